import Foundation
import Replication
import Wire

@testable import Seamesh

func parsed(_ json: String) throws -> Value { try ExtendedJSON.parse(Array(json.utf8), operators: .allowed) }

func parsedMap(_ json: String) throws -> ValueMap { try ExtendedJSON.parseMap(Array(json.utf8), operators: .allowed) }

func document(_ id: Int64, _ json: String) throws -> StoredDocument {
  StoredDocument(id: .int(id), body: try parsedMap(json), etag: "e")
}

/// Data that lies beside the package, where it does.
enum SharedData {
  static let ofish: URL? = {
    var folder = URL(filePath: #filePath).deletingLastPathComponent()
    while folder.path != "/" {
      if FileManager.default.fileExists(atPath: folder.appending(path: "Package.swift").path) {
        let data = folder.appending(path: "../shared/data/ofish")
        return FileManager.default.fileExists(atPath: data.path) ? data : nil
      }
      folder.deleteLastPathComponent()
    }
    return nil
  }()

  static var isThere: Bool { ofish != nil }

  static func documents(_ path: String) throws -> [StoredDocument] {
    guard let ofish else { return [] }
    let bytes = [UInt8](try Data(contentsOf: ofish.appending(path: path)))
    guard case .array(let items) = try ExtendedJSON.parse(bytes, limits: .init(byteCount: 1 << 24)) else { return [] }
    return items.compactMap { item in
      guard case .map(var body) = item, let id = body["_id"] else { return nil }
      body["_id"] = nil
      return StoredDocument(id: id, body: body, etag: "")
    }
  }
}
