import Testing

@testable import Replication

@Suite("The search of forks on one stream") struct ForkSearchTests {
  private let replica = ReplicaID(high: 1, low: 1)

  @Test("the peer is asked once, until something new is known of the chain")
  func once() {
    var search = ForkSearch()
    var asked = [search.begin(replica), search.begin(replica)]
    search.noteNews(of: replica)
    asked.append(search.begin(replica))
    #expect(asked == [true, false, false] && search.holdsBack(replica), "a search brings the news that come meanwhile")

    search.settle(replica, through: 1)
    asked = [search.begin(replica)]
    #expect(!search.isSearched(replica))
    search.noteNews(of: replica)
    asked.append(search.begin(replica))
    search.forget(replica)
    asked.append(search.begin(replica))
    #expect(asked == [false, true, true])
  }

  @Test("what is held back without a search is searched when the chain is shown anew")
  func heldBack() {
    var search = ForkSearch()
    search.holdBack(replica)
    var asked = [search.begin(replica)]
    search.forget(replica)
    asked.append(search.begin(replica))
    #expect(asked == [false, true])
  }

  @Test("where histories differ again behind a search the chain is searched anew, once")
  func anew() {
    var search = ForkSearch()
    _ = search.begin(replica)
    search.settle(replica, through: 1)
    let asked = [search.beginAnew(replica), search.beginAnew(replica)]
    #expect(asked == [true, false] && search.holdsBack(replica))
    search.settle(replica, through: 1)
    #expect(!search.isSearched(replica))
  }

  @Test("a chain whose search has ended is held back until the read has ended that left it out")
  func untilRead() throws {
    var stream = PeerStream(try PartitionName("agency=x"), number: 1, now: MonotonicTime(milliseconds: 0))
    let endings: [(inout PeerStream) -> Void] = [
      { $0.forks.settle(replica, through: 0) }, { $0.forks.forget(replica) },
    ]
    for ends in endings {
      _ = stream.forks.begin(replica)
      _ = stream.outgoing.beginLoad(1)
      ends(&stream)
      let isEndedEarly = stream.endRead()
      #expect(!isEndedEarly && stream.forks.holdsBack(replica) && !stream.forks.isSearched(replica))
      stream.outgoing.endLoad()
      let isEnded = stream.endRead()
      #expect(isEnded && !stream.forks.holdsBack(replica))
      stream.forks.forget(replica)
    }
  }

  @Test("a search that has ended is no question that waits for its answer, though nothing was read since")
  func answeredOtherwise() {
    var search = ForkSearch()
    _ = search.begin(replica)
    search.beginComparison()
    search.settle(replica, through: 1)
    #expect(search.unanswered.isEmpty)
    search.askAgain(replica)
    #expect(!search.isSearched(replica) && search.settled(replica) == 1)
  }

  @Test("a search that begins while what the last one left is still held back is a search, and ends no sooner")
  func begunUntilRead() {
    var search = ForkSearch()
    _ = search.begin(replica)
    search.forget(replica)
    let isBegun = search.begin(replica)
    let isEnded = search.endRead()
    #expect(isBegun && !isEnded && search.isSearched(replica))
  }

  @Test("a chain of which nothing could be read to be shown is asked for again with the next comparison")
  func unreadable() throws {
    var search = ForkSearch()
    search.askAgain(replica)
    #expect(!search.isSearched(replica), "nobody waits for it")
    _ = search.begin(replica)
    let answer = ChainProbe(name: try PartitionName("agency=x"), replica: replica, positions: [], wantsReply: false)
    _ = search.takes(answer)
    search.askAgain(replica)
    search.beginComparison()
    #expect(search.unanswered == [replica] && search.isSearched(replica))
  }

  @Test("the answer to an own question is none of the questions that are answered between two comparisons")
  func budget() throws {
    let name = try PartitionName("agency=x")
    var search = ForkSearch()
    _ = search.begin(replica)
    func taken(_ count: Int, wantsReply: Bool) -> Int {
      let probe = ChainProbe(name: name, replica: replica, positions: [], wantsReply: wantsReply)
      return (0..<count).count { _ in search.takes(probe) }
    }
    let limit = ForkSearch.answeredProbeLimit
    let questions = taken(limit + 5, wantsReply: true)
    let answers = taken(2, wantsReply: false)
    search.beginComparison(isEarly: true)
    let early = taken(5, wantsReply: true)
    search.beginComparison()
    let later = taken(limit + 5, wantsReply: true)
    #expect((questions, answers, early, later) == (limit, 1, 0, limit))
  }

  @Test("a question that was asked before a comparison, and is not answered by its end, is asked anew, once")
  func unanswered() throws {
    var search = ForkSearch()
    _ = search.begin(replica)
    #expect(search.unanswered.isEmpty, "the peer may not have heard it yet")
    search.beginComparison()
    #expect(search.unanswered == [replica])
    search.forget(replica)
    let isAsked = search.begin(replica)
    #expect(isAsked && search.unanswered.isEmpty)
    search.beginComparison()
    let answer = ChainProbe(name: try PartitionName("agency=x"), replica: replica, positions: [], wantsReply: false)
    let isTaken = search.takes(answer)
    #expect(isTaken && search.unanswered.isEmpty)
  }

  @Test("a chain that is being shown in parts is not searched beside that, but once more when all of it is shown")
  func shownInParts() {
    var search = ForkSearch()
    let isBegun = search.begin(replica)
    search.noteRest(of: replica)
    // A comparison finds the partition different meanwhile.
    search.forget(replica)
    let isBegunBeside = search.begin(replica)
    #expect(isBegun && !isBegunBeside && search.isShownInParts(replica) && search.holdsBack(replica))
    let mustBeginAnew = search.endShowing(of: replica)
    search.forget(replica)
    #expect(mustBeginAnew && !search.isSearched(replica))
  }
}
