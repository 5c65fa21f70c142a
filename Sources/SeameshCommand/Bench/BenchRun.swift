/// What the parts of one `seamesh bench` share.
struct BenchRun {
  let sizes: BenchSizes
  let scratch: BenchScratch
  let terminal: Terminal
  let report: BenchReport
}
