"""A second implementation of Seamesh's protocol, written from its description and sharing no code with the node.

It exists to be disagreed with: where its bytes and the node's differ, one of them is wrong about the protocol.
"""
