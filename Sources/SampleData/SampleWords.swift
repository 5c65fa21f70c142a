import Replication

/// Words to make reports of. All invented for this project; several languages, so that text is not only ASCII.
enum SampleWords {
  static let agencies: [(name: Text, weight: Int)] = [
    ("Harbour Patrol North", 40), ("Guardia Costera del Sur", 30), ("Réserve marine de l'Île Verte", 20),
    ("Atoll Rangers", 10),
  ]
  static let firstNames = [
    "Amadou", "Birgit", "Camila", "Dilan", "Eun-ji", "Fiona", "Goran", "Hanne", "Inés", "João", "Kofi", "Lucía",
    "Mehmet", "Nadège", "Owen", "Pilar", "Quentin", "Renée", "Søren", "Thandi", "Umar", "Vera", "Wiremu", "Ximena",
    "Yusuf", "Zoë",
  ]
  static let lastNames = [
    "Abara", "Beaulieu", "Castaño", "Duarte", "Eriksen", "Fofana", "Grönlund", "Halvorsen", "Ibáñez", "Jansen",
    "Kamau", "Lemaître", "Moreau", "Ndiaye", "Oliveira", "Petrov", "Quiñones", "Rasmussen", "Sørlie", "Tavares",
    "Uribe", "Vásquez", "Whitford", "Yılmaz", "Zapata",
  ]
  static let vesselFirst = [
    "STELLA", "BLUE", "GRAND", "ISLA", "COLD", "VIRGEN DE", "SAN", "WILD", "SILVER", "DOÑA", "JEUNE", "ROJA", "FAR",
    "LUCKY",
  ]
  static let vesselSecond = [
    "HERON", "MARIS", "PEARL", "ESPERANZA", "VENTURE", "TIDE", "GAVIOTA", "CORMORAN", "BREEZE", "ALBATROS",
    "ESTRELLA", "MARÍA", "NIÑA", "HORIZON", "JOSÉ",
  ]
  static let vesselSuffix = ["", "", "", " II", " III", " IV", " 7"]
  static let nationalities = ["EC", "PA", "PE", "GA", "FR", "NO", "US", "PT", "SN", "ES"]
  static let ports = ["Puerto Alba", "Port-Ferrand", "Kestrel Bay", "Santa Rita", "Nordvik", "Baie des Vents", "Other"]
  static let businesses = ["", "", "Pescados Alba S.A.", "Kestrel Cold Store", "Mareyage Ferrand", "Nordvik Fisk"]
  static let emsTypes = ["Automatic identification", "Satellite beacon", "Camera on deck", "Other"]
  static let emsDescriptions = ["", "", "Seal intact", "Switched off on arrival"]
  static let activities = ["Fishing", "In transit", "Landing catch", "At anchor", "Other"]
  static let fisheries = ["Small pelagics", "Tropical tuna", "Hake", "Shrimp", "Other"]
  static let gear = ["Purse seine", "Drift net", "Pole and line", "Bottom trawl", "Traps", "Other"]
  static let species = ["Skipjack", "Yellowfin", "Hake", "Sardine", "Octopus", "Spiny lobster", "Other"]
  static let units = ["lbs", "kg", "Tons", "Tonnes"]
  /// Code and explanation belong together.
  static let offences = [
    ("MR 12(1)", "Fishing inside a closed area"), ("MR 14(3)(b)", "No valid permit on board"),
    ("MR 21(2)", "Catch below the minimum size"), ("MR 22", "Gear that is not allowed in this season"),
    ("MR 30(4)(a)", "Logbook not kept for more than two days"), ("MR 41", "Transhipment without prior notice"),
  ]
  static let amberReasons = [
    "Life raft overdue", "Expired flares", "Capitaine absent au contrôle", "Two crew unlisted",
  ]
  static let notes = [
    "Hold opened and measured", "Bitácora al día, sin novedad", "Le patron parle peu, papiers en règle",
    "Net marked with the wrong number", "Nada que declarar", "Photos taken from starboard",
    "Radio silent until we came alongside", "Glace en quantité, poisson propre",
    "🦈 fins found below deck, weighed twice",
    "Redes plegadas y secas", "Engine hours do not fit the log", "Crew asked for water, given",
  ]
  static let seizures = ["", "", "", "", "One drift net, 400 m", "12 kg de langosta", "Carnet de pêche falsifié"]

  /// Fishing grounds: longitude and latitude in degrees of the south-west corner, and the extent from there.
  static let grounds: [(west: Double, south: Double, width: Double, height: Double)] = [
    (-91.8, -1.6, 2.5, 2.2), (8.4, -2.4, 1.1, 2.0), (4.6, 60.1, 1.4, 2.2), (-17.9, 13.9, 0.8, 1.3),
  ]
}
