"""The connection: TLS 1.3 with self-signed Ed25519 certificates on both sides, and frames on top of it."""

import datetime
import socket
import struct

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID
from nacl.signing import SigningKey
from OpenSSL import SSL, crypto

PROTOCOL = b"seamesh/1"
EXPORTER_LABEL = b"EXPORTER-seamesh/1"
#: Of what is received: senders keep to 64 KiB less.
FRAME_LIMIT = 4 * 1024 * 1024 + 64 * 1024
#: Says that a frame is compressed, which nobody may send to who has not said that he takes it.
COMPRESSED = 1 << 31


def _private_key(key: SigningKey) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes(key))


def certificate(key: SigningKey) -> bytes:
    """The certificate that a node shows, DER: the same bytes at every start."""
    private = _private_key(key)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "seamesh")])
    return (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(datetime.datetime(1970, 1, 1))
        .not_valid_after(datetime.datetime(9999, 12, 31, 23, 59, 59))
        .sign(private, None).public_bytes(serialization.Encoding.DER)
    )  # fmt: skip


def _context(key: SigningKey, protocol: bytes) -> SSL.Context:
    context = SSL.Context(SSL.TLS_METHOD)
    context.set_min_proto_version(SSL.TLS1_3_VERSION)
    context.set_alpn_protos([protocol])
    context.set_alpn_select_callback(lambda _, offered: protocol if protocol in offered else SSL.NO_OVERLAPPING_PROTOCOLS)
    context.use_certificate(crypto.load_certificate(crypto.FILETYPE_ASN1, certificate(key)))
    context.use_privatekey(crypto.PKey.from_cryptography_key(_private_key(key)))
    # The key is judged after the handshake; dates, names and chains never.
    context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, lambda *_: True)
    return context


class Closed(Exception):
    """The other side has closed the connection."""


class Channel:
    """One connection. ``peer`` is the other side's device key, ``exporter`` the value that both share."""

    def __init__(self, sock: socket.socket, key: SigningKey, dialling: bool, protocol: bytes = PROTOCOL):
        # pyOpenSSL reports a socket with a timeout as "want read"; a deadline in the kernel keeps calls blocking.
        sock.settimeout(None)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 20, 0))
        self._socket = sock
        self._tls = SSL.Connection(_context(key, protocol), sock)
        self._tls.set_connect_state() if dialling else self._tls.set_accept_state()
        self._tls.do_handshake()
        if self._tls.get_alpn_proto_negotiated() != protocol:
            raise ValueError("another protocol")
        public = self._tls.get_peer_certificate().to_cryptography().public_key()
        self.peer = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.exporter = self._tls.export_keying_material(EXPORTER_LABEL, 32, b"")

    def send(self, message: bytes):
        self._tls.sendall(len(message).to_bytes(4, "big") + message)

    def send_head(self, count: int):
        """The four bytes before a message alone."""
        self._tls.sendall(count.to_bytes(4, "big"))

    def receive(self, seconds: float = 20) -> bytes:
        """Raises Closed when the other side has closed, TimeoutError when nothing came for so long."""
        deadline = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, deadline)
        count = int.from_bytes(self._exactly(4), "big")
        if count & COMPRESSED:
            raise ValueError("a compressed frame")
        if not 0 < count <= FRAME_LIMIT:
            raise ValueError(f"a frame of {count} bytes")
        return self._exactly(count)

    def tcp_bytes(self) -> tuple[int, int]:
        """Sent and received on the connection so far, TLS and its handshake included, by the kernel's count."""
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 208)
        return struct.unpack_from("Q", info, 200)[0], struct.unpack_from("Q", info, 128)[0]

    def close(self):
        try:
            self._tls.shutdown()
        except SSL.Error:
            pass  # The other side was first.
        self._tls.close()

    def _exactly(self, count: int) -> bytes:
        content = b""
        while len(content) < count:
            try:
                content += self._tls.recv(count - len(content))
            except (SSL.ZeroReturnError, SSL.SysCallError) as error:
                raise Closed from error
            except SSL.WantReadError as error:
                raise TimeoutError("silence") from error
        return content


def dial(host: str, port: int, key: SigningKey) -> Channel:
    return Channel(socket.create_connection((host, port), timeout=20), key, dialling=True)
