// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .enableExperimentalFeature("Lifetimes"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
]

// Apple asks for it where an app is submitted; other systems have no use for a bundle of resources.
#if os(macOS)
let privacyManifest: [Resource] = [.copy("PrivacyInfo.xcprivacy")]
let privacyManifestElsewhere: [String] = []
#else
let privacyManifest: [Resource] = []
let privacyManifestElsewhere = ["PrivacyInfo.xcprivacy"]
#endif

let package = Package(
    name: "Larder",
    // Not watchOS: its Int has 32 bits on some devices.
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .visionOS(.v2)],
    products: [
        .library(name: "Larder", targets: ["Larder"]),
        .library(name: "LarderHTTP", targets: ["LarderHTTP"]),
        .library(name: "LarderAWS", targets: ["LarderAWS"]),
        .library(name: "LarderImport", targets: ["LarderImport"]),
        .executable(name: "larder", targets: ["LarderCommand"]),
        .executable(name: "larder-migrate", targets: ["LarderMigrateCommand"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/attaswift/BigInt", from: "6.0.1"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // The layers, lowest first. Imports point down only.
        .systemLibrary(
            name: "CLMDB",
            pkgConfig: "lmdb",
            providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]
        ),
        // Calls that Swift does not see.
        .target(name: "CFiles"),
        .target(name: "LarderFiles", dependencies: ["CFiles"], swiftSettings: strict),
        .target(name: "LarderLMDB", dependencies: ["CLMDB", "LarderFiles"], swiftSettings: strict),
        .target(name: "LarderGraphQL", swiftSettings: strict),
        .target(
            name: "LarderRecords",
            dependencies: [
                "LarderFiles", "LarderLMDB", "LarderGraphQL",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LarderMigrations",
            path: "Migrations",
            exclude: ["README.md"],
            resources: [
                .embedInCode("0001-mutations.sql"), .embedInCode("0002-watchers.sql"),
                .embedInCode("0003-environments.sql"), .embedInCode("0004-transfers.sql"),
                .embedInCode("0005-touched-keys.sql"), .embedInCode("0006-transfer-changes.sql"),
                .embedInCode("0007-transfer-places.sql"), .embedInCode("0008-transfer-digests.sql"),
                .embedInCode("0009-transfer-removals.sql"), .embedInCode("0010-mutation-links.sql"),
                .embedInCode("0011-mutation-doubts.sql"),
                .embedInCode("0012-transfer-doubts.sql"),
                .embedInCode("0013-forgotten-outcomes.sql"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LarderOperations",
            dependencies: [
                "LarderMigrations", "LarderGraphQL", "LarderFiles", "CFiles",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
                // The C functions by which a row's columns are read.
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        // CRC-32C by the processor's instructions.
        .target(name: "CChecksums"),
        .target(
            name: "Larder",
            dependencies: [
                "LarderFiles", "LarderRecords", "LarderOperations", "LarderGraphQL", "CChecksums",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            exclude: privacyManifestElsewhere,
            resources: privacyManifest,
            swiftSettings: strict
        ),
        // What a store takes over from the caches of other libraries.
        .target(
            name: "LarderImport",
            dependencies: [
                "Larder", "LarderFiles", "LarderRecords", "LarderGraphQL",
                .product(name: "Crypto", package: "swift-crypto"),
                // Their files are opened as only SQLite's C functions can: without a trace.
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LarderHTTP",
            dependencies: [
                "Larder",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                // What the client throws is told apart by these modules' error types.
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTPCompression", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LarderAWS",
            dependencies: [
                // From LarderHTTP what is HTTP's and not GraphQL's: dates, Retry-After, and what the client's errors mean.
                "Larder", "LarderHTTP",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                // The proof of a password is made of numbers of 3,072 bits.
                .product(name: "BigInt", package: "BigInt"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),

        // The programs.
        .target(
            name: "LarderCommandLine",
            dependencies: [
                "Larder", "LarderFiles", "LarderOperations", "LarderRecords", "LarderLMDB",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tools/CommandLine",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "LarderMigrateCommand",
            dependencies: [
                "LarderCommandLine", "Larder", "LarderFiles", "LarderImport", "LarderOperations", "LarderRecords",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tools/larder-migrate",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "LarderCommand",
            dependencies: [
                "LarderCommandLine", "Larder", "LarderAWS", "LarderHTTP", "LarderOperations", "LarderRecords",
                "LarderLMDB", "LarderGraphQL",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tools/larder",
            swiftSettings: strict
        ),
        .target(name: "CAllocations", path: "Tools/CAllocations"),
        .executableTarget(
            name: "larder-bench",
            dependencies: [
                "CAllocations", "Larder", "LarderAWS", "LarderOperations", "LarderMigrations", "LarderRecords",
                "LarderLMDB", "LarderGraphQL", "CLMDB", "ObjectServer",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            path: "Tools/larder-bench",
            swiftSettings: strict
        ),
        .target(
            name: "RecipeServer",
            dependencies: [
                "LarderGraphQL",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            path: "Tools/RecipeServer",
            swiftSettings: strict
        ),
        .target(
            name: "ObjectServer",
            dependencies: [
                "Larder", "LarderAWS",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Tools/ObjectServer",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "larder-demo",
            dependencies: [
                "Larder", "LarderAWS", "LarderHTTP", "ObjectServer", "RecipeServer",
                // To tamper with larder.sqlite as another program would.
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            path: "Tools/larder-demo",
            swiftSettings: strict
        ),

        // The tests.
        .target(
            name: "LarderTestSupport",
            // To make servers that speak TLS.
            dependencies: [.product(name: "NIOSSL", package: "swift-nio-ssl")],
            path: "Tests/Support",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderLMDBTests", dependencies: ["LarderFiles", "LarderLMDB", "LarderTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "LarderGraphQLTests", dependencies: ["LarderGraphQL", "LarderTestSupport"], swiftSettings: strict),
        .testTarget(
            name: "LarderRecordsTests", dependencies: ["LarderFiles", "LarderRecords", "LarderTestSupport"],
            swiftSettings: strict),
        .executableTarget(
            name: "larder-operations-crash",
            dependencies: ["LarderOperations", "LarderTestSupport"],
            path: "Tests/OperationsCrash",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderOperationsTests",
            dependencies: [
                "LarderOperations", "LarderMigrations", "LarderTestSupport", "larder-operations-crash",
                // To make databases that are not ours, and to ask SQLite how it would run a statement.
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        // What a power cut may leave of a recorded store, and whether that keeps what was promised. The recorder is
        // preloaded into the program below, and compiled when it is needed.
        .target(
            name: "LarderPowerLoss",
            dependencies: ["Larder", "LarderOperations", "LarderRecords", "LarderTestSupport"],
            path: "Tests/PowerLoss",
            exclude: ["recorder.c"],
            swiftSettings: strict
        ),
        // A program that the tests start, stop and kill.
        .executableTarget(
            name: "larder-crash",
            dependencies: [
                "Larder", "LarderOperations", "LarderPowerLoss", "LarderRecords", "LarderTestSupport",
                // To take the room that a log has, as another program would.
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            path: "Tests/Crash",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderTests",
            dependencies: [
                "Larder", "LarderFiles", "LarderOperations", "LarderPowerLoss", "LarderRecords", "LarderTestSupport",
                "larder-crash",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                // To hold, damage and look into larder.sqlite as another program would.
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderImportTests",
            dependencies: [
                "Larder", "LarderImport", "LarderOperations", "LarderRecords", "LarderGraphQL",
                "LarderTestSupport",
                // To make the files that other libraries would.
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderHTTPTests",
            dependencies: [
                "Larder", "LarderHTTP", "RecipeServer", "LarderTestSupport",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "larder-transfer-crash",
            dependencies: ["Larder", "LarderAWS", "LarderTestSupport"],
            path: "Tests/TransferCrash",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderAWSTests",
            dependencies: [
                "Larder", "LarderAWS", "LarderTestSupport", "larder-transfer-crash",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "BigInt", package: "BigInt"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "larder-migrate-crash",
            dependencies: ["Larder", "LarderOperations", "LarderRecords", "LarderTestSupport"],
            path: "Tests/MigrateCrash",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderMigrateTests",
            dependencies: [
                "Larder", "LarderFiles", "LarderOperations", "LarderRecords", "LarderLMDB", "LarderMigrations",
                "LarderMigrateCommand",
                "larder-migrate-crash", "LarderTestSupport",
                // To make databases as other programs, or other versions, would.
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderCommandTests",
            dependencies: [
                "Larder", "LarderAWS", "LarderCommand", "LarderCommandLine", "LarderMigrateCommand", "LarderOperations",
                "RecipeServer", "LarderTestSupport",
            ],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
