/// Everything the command can do, in the order in which help shows it.
let verbTable: [Verb] = [
  initVerb, runVerb, inviteVerb, invitesVerb, joinVerb, devicesVerb,
  grantVerb, permissionsVerb, rulesVerb, revokeVerb, retireVerb, raiseVerb, promoteVerb,
  putVerb, getVerb, patchVerb, deleteVerb, findVerb, watchVerb, conflictsVerb, resolveVerb,
  importVerb, exportVerb, sampleVerb,
  receiptsVerb, safeToWipeVerb, subscribeVerb, unsubscribeVerb, partitionsVerb, peersVerb, statusVerb,
  linksVerb, doctorVerb, backupVerb, restoreVerb, forwardVerb, verifyLedgerVerb, benchVerb, simulateVerb,
  helpVerb, versionVerb, completionVerb, manualVerb,
]
