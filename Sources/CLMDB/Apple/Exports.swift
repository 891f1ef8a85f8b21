// Only a Mac compiles this file: see Package.swift. LMDB's functions have the name there that they have elsewhere.
@_exported import LMDB
