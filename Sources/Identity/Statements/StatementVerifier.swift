import Replication
import Wire

/// Judges statements that come from outside: what passes here was signed by the issuer it names.
///
/// Whether the issuer may say so is another question, which `Authority` answers.
package struct StatementVerifier: Sendable {
  package let fleet: FleetID

  package init(fleet: FleetID) { self.fleet = fleet }

  package enum Failure: Error, Equatable, Sendable {
    case statement(StatementError)
    case otherFleet(FleetID)
    case signature(issuer: PublicKey)
  }

  /// Callable from any thread. Statements of unknown kinds pass, so that they can be kept and sent on.
  package func verify(_ encoded: ArraySlice<UInt8>) throws(Failure) -> Statement {
    let statement: Statement
    do throws(StatementError) {
      statement = try StatementCodec.decode(encoded, SHA256.hash)
    } catch {
      throw .statement(error)
    }
    guard statement.fleet == fleet else { throw .otherFleet(statement.fleet) }
    guard Ed25519.verify(statement.signature, StatementCodec.signedBytes(of: encoded), statement.issuer) else {
      throw .signature(issuer: statement.issuer)
    }
    return statement
  }

  package func verify(_ encoded: [UInt8]) throws(Failure) -> Statement { try verify(encoded[...]) }

  /// One that was verified before: decodes it alone.
  package func readVerified(_ encoded: [UInt8]) -> Statement? { try? StatementCodec.decode(encoded[...], SHA256.hash) }

  package func read(_ encoded: [UInt8]) -> StatementReading {
    do throws(Failure) {
      return .statement(try verify(encoded))
    } catch .statement(let error) {
      return StatementReading(error)
    } catch {
      return .broken
    }
  }
}
