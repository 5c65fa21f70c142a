import Engine
import Forwarding
import Replication
import Seamesh
import Wire

/// Writes the office's edits as changes of this node's device.
final class NodeEdits: EditWriter {
  /// Whose devices bring edits home: so it is plain at sea who speaks.
  static let user = "office"

  private let node: Node

  /// - Throws: where the device is not one of the office.
  init(_ node: Node) throws(Failure) {
    self.node = node
    let devices = try local { () throws(NodeError) in try node.devices() }
    let user = devices.first { $0.isSelf }?.user ?? ""
    guard user == NodeEdits.user else {
      throw Failure(
        .notPermitted,
        "--home-bound is for a device of the user \(NodeEdits.user), and this one is of \(user.isEmpty ? "nobody" : user)"
          + ": join with a code of seamesh invite --user=\(NodeEdits.user)")
    }
  }

  func write(_ edit: OfficeEdit) -> EditOutcome {
    do {
      let wish = try Wish(edit)
      return try write(wish, edit)
    } catch let error as Refusal {
      return .refused(error.sentence)
    } catch let error as NodeError where error.code == .preconditionFailed && edit.read == nil {
      return .refused(
        "the document was deleted, and what others wrote to it meanwhile waits for a decision: see seamesh_office.conflicts"
      )
    } catch let error as NodeError {
      return outcome(of: error)
    } catch {
      return .refused(words(of: error))
    }
  }

  private struct Refusal: Error { let sentence: String }

  /// An edit as the node's own terms have it.
  private struct Wish {
    let partition: PartitionName
    let collection: Text
    let id: Value
    let body: ValueMap?
    let read: DocumentState?

    init(_ edit: OfficeEdit) throws {
      do { partition = try PartitionName(Text(edit.partition)) } catch {
        let limit = PartitionName.byteLimit
        throw Refusal(sentence: "a partition's name has 1 to \(limit) bytes and no control characters")
      }
      collection = Text(edit.collection)
      do {
        id = try ExtendedJSON.parse(Array(edit.documentID.utf8), limits: .ofDatabase)
        body = try edit.body.map { try ExtendedJSON.parseMap(Array($0.utf8), limits: .ofDatabase) }
      } catch {
        throw Refusal(sentence: "the document cannot be read: \(error)")
      }
      do { read = try edit.read.map { try DocumentState(encoded: $0) } } catch {
        throw Refusal(sentence: "what was read is no version of a document")
      }
    }
  }

  private func write(_ wish: Wish, _ edit: OfficeEdit) throws -> EditOutcome {
    var read = wish.read
    if read == nil {
      let present = try node.state(of: wish.collection, id: wish.id, in: wish.partition)
      if present?.isAlive == true { return .refused("a document with this id is there already") }
      read = present?.asEnded
    } else if read?.isAlive == false {
      return .refused("the document was deleted")
    }
    let body = wish.body.map { OfficeBody.exact($0, read: read?.shown()) }
    let request = DocumentRequest(
      collection: wish.collection, id: wish.id, action: body.map { .put(body: $0, keepAbsent: false) } ?? .delete)
    let reading = EarlierReading(
      state: read, wall: WallTime(milliseconds: edit.madeMilliseconds),
      extensions: [NodeEdits.onBehalf(of: edit.user), edit.id.asCause].compactMap { $0 })
    return try node.write(wish.partition, request, reading: reading).dot == nil ? .unchanged : .written
  }

  private static func onBehalf(of user: String) -> ChangeExtension? {
    let name = Array(user.utf8)
    guard (1...255).contains(name.count) else { return nil }
    return ChangeExtension(type: ChangeExtension.Registered.onBehalfOf, content: name)
  }

  /// What passes is left for later, or for a relay that knows more. So is what stands in the way of this device alone: whose
  /// membership was ended does not speak for the office any more, which may still have the right.
  private func outcome(of error: NodeError) -> EditOutcome {
    switch error.code {
    case .notPermitted where !isMember: .left(error.message)
    // Of what this device holds, not of the edit.
    case .tooLarge where error.limit == nil: .left(error.message)
    case .busy, .unanswered, .stopping, .damaged, .storeFailed, .otherVersion, .diskFull, .readOnly, .failed:
      .left(error.message)
    default: .refused(error.message)
    }
  }

  private var isMember: Bool {
    guard let devices = try? node.devices(), let own = devices.first(where: \.isSelf) else { return false }
    return own.endedBy.isEmpty
  }
}
