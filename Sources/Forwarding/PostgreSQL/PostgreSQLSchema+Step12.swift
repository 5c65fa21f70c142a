extension PostgreSQLSchema {
  /// A relay that is started again is not kept away by the last call of the process before it.
  static let step12 = Step(number: 12, functions: [], sql: holdRelay12)
}
