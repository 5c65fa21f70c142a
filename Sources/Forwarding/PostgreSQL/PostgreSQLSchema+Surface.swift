extension PostgreSQLSchema {
  /// Something beside the tables that holds nothing of its own: it can be made anew from them at any time.
  struct SurfacePiece: Sendable {
    /// An expression that is null where it is missing.
    let presence: String
    let sql: String
    /// The format that brought it.
    let since: Int
  }

  /// The schemas that people at the backend look at, in the order in which they can be made. A dump of `seamesh` alone has none of
  /// them, and steps that were taken are not taken again.
  static let surface: [SurfacePiece] = [
    SurfacePiece(
      presence: "to_regnamespace('seamesh_views')", sql: "CREATE SCHEMA seamesh_views;", since: documentsStep.number),
    SurfacePiece(
      presence: "to_regnamespace('seamesh_office')", sql: "CREATE SCHEMA seamesh_office;", since: officeStep.number),
    SurfacePiece(presence: "to_regclass('seamesh_office.conflicts')", sql: conflictsView4, since: officeStep.number),
    SurfacePiece(presence: "to_regclass('seamesh_office.edits')", sql: editsView13, since: step13.number),
    SurfacePiece(
      presence: "to_regproc('seamesh_office.edit')",
      sql: edit4 + "\nREVOKE ALL ON FUNCTION seamesh_office.edit FROM PUBLIC;", since: officeStep.number),
    SurfacePiece(
      presence: "to_regclass('seamesh_office.documents')",
      sql: documentsView4 + "\n" + takeEdit4 + "\nREVOKE ALL ON FUNCTION seamesh_office.take_edit FROM PUBLIC;",
      since: officeStep.number),
    SurfacePiece(presence: "to_regproc('seamesh_office.change')", sql: change8, since: step8.number),
  ]
}
