/// Everything that is answered. What is not built yet is absent here, and so answers 404.
let allRoutes: [Route] =
  statusRoutes + documentRoutes + queryRoutes + transactionRoutes + importRoutes + exportRoutes + subscriptionRoutes
  + conflictRoutes + rightsRoutes + receiptRoutes + wipeRoutes + linkRoutes + invitationRoutes + maintenanceRoutes
