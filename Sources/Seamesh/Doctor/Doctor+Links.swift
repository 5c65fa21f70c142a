import Links

extension Doctor {
  /// What keeps something from passing that the operator may not have in mind.
  static func finding(_ link: LinkReport) -> DoctorFinding? {
    if link.passes == LinkPassage.nothing.name, link.isChosen {
      return DoctorFinding(
        .warning, "link-closed",
        "No connection beyond this machine is made or taken: every link was given the class none.",
        remedy: "seamesh links --use=auto has each be of its own class again.")
    }
    guard link.passes == LinkPassage.authority.name, let limit = link.bytesPerDay else { return nil }
    return DoctorFinding(
      .warning, "link-used-up",
      "Links of the class \(link.linkClass) have carried the \(limit) bytes of today: nothing but authority passes over them.",
      remedy:
        "It goes on at 00:00 UTC. Sooner: raise bytesPerDay in the class's --link, or choose another with seamesh links --use."
    )
  }
}
