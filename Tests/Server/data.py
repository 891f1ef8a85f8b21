"""The star catalogue: rounded figures, enough of them for relations in both directions."""

CONSTELLATIONS = {
    # code: (name, id of the brightest star)
    "LYR": ("Lyra", "s1"),
    "CEN": ("Centaurus", "s2"),
    "CNC": ("Cancer", "s5"),
    "ORI": ("Orion", "s7"),
    "CMA": ("Canis Major", "s9"),
}

STARS = {
    # id: name, magnitude, class, hours, degrees, light years, constellation, companions, age in millions of years
    "s1": ("Vega", 0.03, "A", 18.6, 38.8, 25.0, "LYR", [], 450.0),
    "s2": ("Rigil Kentaurus", -0.01, "G", 14.7, -60.8, 4.4, "CEN", ["s3", "s4"], 5300.0),
    "s3": ("Toliman", 1.33, "K", 14.7, -60.8, 4.4, "CEN", ["s2", "s4"], 5300.0),
    "s4": ("Proxima Centauri", 11.13, "M", 14.5, -62.7, 4.2, "CEN", ["s2", "s3"], None),
    "s5": ("Copernicus", 5.95, "G", 8.9, 28.3, 41.0, "CNC", [None], 8600.0),
    "s6": ("Sheliak", 3.52, "B", 18.8, 33.4, 960.0, "LYR", [None, None], None),
    "s7": ("Rigel", 0.13, "B", 5.2, -8.2, 860.0, "ORI", [None], 8.0),
    "s8": ("Betelgeuse", 0.5, "M", 5.9, 7.4, 550.0, "ORI", [], None),
    "s9": ("Sirius", -1.46, "A", 6.8, -16.7, 8.6, "CMA", ["s10"], 242.0),
    "s10": ("Sirius B", 8.44, "A", 6.8, -16.7, 8.6, "CMA", ["s9"], 228.0),
}

VARIABLE_STARS = {"s4", "s6", "s8"}

PLANETS = {
    # id: name, magnitude, radius in Earth radii, day of discovery, star
    "p1": ("Proxima Centauri b", None, 1.1, "2016-08-24", "s4"),
    "p2": ("Proxima Centauri d", None, 0.8, "2022-02-10", "s4"),
    "p3": ("Galileo", None, 13.9, "1996-04-12", "s5"),
    "p4": ("Brahe", None, 10.0, "2002-06-13", "s5"),
    "p5": ("Janssen", None, 1.9, "2004-08-30", "s5"),
}
