import Testing

@testable import SeameshCommand

struct HeapReserveTests {
  @Test("the limit of a control group is looked for where its version keeps it")
  func groups() {
    let first = "9:name=systemd:/a\n7:cpu,memory:/b/c\n2:cpu:/d\n"
    #expect(HeapReserve.groupLimits(first) == ["/sys/fs/cgroup/memory/b/c/memory.limit_in_bytes"])
    #expect(HeapReserve.groupLimits("0::/user.slice\n") == ["/sys/fs/cgroup/user.slice/memory.max"])
    #expect(HeapReserve.groupLimits("") == [] && HeapReserve.groupLimits("no line of it") == [])
  }
}
