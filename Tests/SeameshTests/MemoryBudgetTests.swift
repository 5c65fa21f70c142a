import Storage
import Testing

@testable import Seamesh

struct MemoryBudgetTests {
  @Test("the limit of a control group is looked for where its version keeps it, and in the groups around it")
  func groups() {
    let first = "9:name=systemd:/a\n7:cpu,memory:/b/c\n2:cpu:/d\n"
    let files = ["/b/c", "/b", ""].map { "/sys/fs/cgroup/memory\($0)/memory.limit_in_bytes" }
    #expect(MemoryBudget.groupLimits(first) == files)
    let second = ["/user.slice/a", "/user.slice", ""].map { "/sys/fs/cgroup\($0)/memory.max" }
    #expect(MemoryBudget.groupLimits("0::/user.slice/a\n") == second)
    #expect(MemoryBudget.groupLimits("0::/\n") == ["/sys/fs/cgroup/memory.max"])
    #expect(MemoryBudget.groupLimits("") == [] && MemoryBudget.groupLimits("no line of it") == [])
  }

  @Test("caches of writer and readers leave a process of 64 MiB most of it, and are whole where there is plenty")
  func caches() {
    let little = MemoryBudget(byteCount: 64 << 20)
    let cache = little.storeOptions.cacheBytes
    #expect(little.isLittle && cache + StoreReaders.limit * cache / 4 <= 12 << 20)
    #expect(64 * little.smallResultBytes <= 4 << 20, "as many as can be connected wait for a turn with so much each")
    #expect(MemoryBudget(byteCount: 0).storeOptions.cacheBytes == 1 << 20, "a process that cannot be helped tries")
    #expect(MemoryBudget(byteCount: 1 << 30).storeOptions.cacheBytes == StoreOptions().cacheBytes)
  }
}
