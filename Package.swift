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

// A Mac builds for systems on which no LMDB is installed. The same library there as its sources, under the same name.
#if os(macOS)
let lmdbPackages: [Package.Dependency] = [
    .package(url: "https://github.com/agisboye/CLMDB", .upToNextMinor(from: "0.9.33"))
]
let lmdb = Target.target(
    name: "CLMDB", dependencies: [.product(name: "LMDB", package: "CLMDB")], path: "Sources/CLMDB/Apple")
#else
let lmdbPackages: [Package.Dependency] = []
let lmdb = Target.systemLibrary(name: "CLMDB", pkgConfig: "lmdb", providers: [.apt(["liblmdb-dev"])])
#endif

// Each product of other packages is named once.
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let tracing = Target.Dependency.product(name: "Tracing", package: "swift-distributed-tracing")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let bigIntegers = Target.Dependency.product(name: "BigInt", package: "BigInt")
let httpClient = Target.Dependency.product(name: "AsyncHTTPClient", package: "async-http-client")
let tls = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let compression = Target.Dependency.product(name: "NIOHTTPCompression", package: "swift-nio-extras")
let http2 = Target.Dependency.product(name: "NIOHTTP2", package: "swift-nio-http2")
let nio = ["NIOCore", "NIOHTTP1", "NIOPosix"].map { Target.Dependency.product(name: $0, package: "swift-nio") }
let webSocket = Target.Dependency.product(name: "NIOWebSocket", package: "swift-nio")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
/// SQLite's C functions.
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")

let migrations = [
    "0001-mutations", "0002-watchers", "0003-environments", "0004-transfers", "0005-touched-keys",
    "0006-transfer-changes", "0007-transfer-places", "0008-transfer-digests", "0009-transfer-removals",
    "0010-mutation-links", "0011-mutation-doubts", "0012-transfer-doubts", "0013-forgotten-outcomes",
    "0014-pins", "0015-homes", "0016-transfer-storages", "0017-handed-over",
]

let package = Package(
    name: "Larder",
    // Tested on Linux, which needs no line here. Apple's systems are declared where the code is ready for them; parts of it
    // are type-checked by Tools/check-apple, and nothing was compiled or run there. Not watchOS: its Int has 32 bits on
    // some devices.
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .visionOS(.v2)],
    products: [
        .library(name: "Larder", targets: ["Larder"]),
        .library(name: "LarderHTTP", targets: ["LarderHTTP"]),
        .library(name: "LarderURLSession", targets: ["LarderURLSession"]),
        .library(name: "LarderAWS", targets: ["LarderAWS"]),
        .library(name: "LarderSwiftUI", targets: ["LarderSwiftUI"]),
        .library(name: "LarderTesting", targets: ["LarderTesting"]),
        .executable(name: "larder", targets: ["LarderCommand"]),
        .executable(name: "larder-migrate", targets: ["LarderMigrateCommand"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/attaswift/BigInt", from: "6.0.1"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        // Only `swift package generate-documentation` uses it.
        .package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"),
    ] + lmdbPackages,
    targets: [
        // The layers, lowest first. Imports point down only.
        lmdb,
        // Calls that Swift does not see.
        .target(name: "CFiles"),
        .target(name: "LarderFiles", dependencies: ["CFiles"], swiftSettings: strict),
        .target(
            name: "LarderLMDB", dependencies: ["CFiles", "CLMDB", "LarderFiles"],
            swiftSettings: strict + [.strictMemorySafety()]),
        .target(name: "LarderGraphQL", swiftSettings: strict),
        .target(
            name: "LarderRecords",
            dependencies: ["CFiles", "LarderFiles", "LarderLMDB", "LarderGraphQL", crypto],
            swiftSettings: strict + [.strictMemorySafety()]
        ),
        .target(
            name: "LarderMigrations",
            path: "Migrations",
            exclude: ["README.md"],
            resources: migrations.map { .embedInCode("\($0).sql") },
            swiftSettings: strict
        ),
        .target(
            name: "LarderOperations",
            dependencies: [
                "LarderMigrations", "LarderGraphQL", "LarderFiles", "CFiles", crypto, grdb,
                // The C functions by which a row's columns are read.
                sqlite,
            ],
            swiftSettings: strict
        ),
        // CRC-32C by the processor's instructions.
        .target(name: "CChecksums"),
        .target(
            name: "Larder",
            dependencies: [
                "LarderFiles", "LarderRecords", "LarderOperations", "LarderGraphQL", "CChecksums", crypto, logging,
                lifecycle, metrics, tracing,
            ],
            exclude: privacyManifestElsewhere,
            resources: privacyManifest,
            swiftSettings: strict
        ),
        // What a store takes over from the caches of other libraries.
        .target(
            name: "LarderImport",
            dependencies: [
                "Larder", "LarderFiles", "LarderRecords", "LarderGraphQL", crypto,
                // Their files are opened as only SQLite's C functions can: without a trace.
                sqlite,
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LarderHTTP",
            dependencies: [
                "Larder", "LarderFiles", httpClient,
                // What the client throws is told apart by these modules' error types.
                compression, http2, tls,
                // Subscriptions.
                webSocket,
            ] + nio,
            swiftSettings: strict
        ),
        // The system's HTTP client instead of NIO's.
        .target(name: "LarderURLSession", dependencies: ["Larder"], swiftSettings: strict),
        .target(
            name: "LarderAWS",
            dependencies: [
                // From LarderHTTP what is HTTP's and not GraphQL's: dates, Retry-After, the client's errors.
                "Larder", "LarderFiles", "LarderHTTP", httpClient, crypto,
                // The proof of a password is made of numbers of 3,072 bits.
                bigIntegers,
            ] + nio,
            swiftSettings: strict
        ),
        // A sign-in screen; empty where there is no SwiftUI.
        .target(name: "LarderSwiftUI", dependencies: ["Larder", "LarderAWS"], swiftSettings: strict),
        // What a program that uses Larder is tested with: servers, a network and stores.
        .target(name: "LarderTesting", dependencies: ["Larder", "LarderGraphQL"], swiftSettings: strict),

        // The programs.
        .target(
            name: "LarderCommandLine",
            dependencies: ["Larder", "LarderFiles", "LarderOperations", "LarderRecords", "LarderLMDB", argumentParser],
            path: "Tools/CommandLine",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "LarderMigrateCommand",
            dependencies: [
                "LarderCommandLine", "Larder", "LarderFiles", "LarderImport", "LarderOperations", "LarderRecords",
                argumentParser,
            ],
            path: "Tools/larder-migrate",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "LarderCommand",
            dependencies: [
                "LarderCommandLine", "Larder", "LarderAWS", "LarderFiles", "LarderHTTP", "LarderOperations",
                "LarderRecords",
                "LarderLMDB", "LarderGraphQL", argumentParser,
            ],
            path: "Tools/larder",
            swiftSettings: strict
        ),
        .target(name: "CAllocations", path: "Tools/CAllocations"),
        .executableTarget(
            name: "larder-bench",
            dependencies: [
                "CAllocations", "Larder", "LarderAWS", "LarderFiles", "LarderOperations", "LarderMigrations",
                "LarderRecords", "LarderTesting",
                "LarderLMDB", "LarderGraphQL", "LarderHTTP", "CLMDB", "ObjectServer", argumentParser,
                bigIntegers, crypto, grdb, httpClient, sqlite, webSocket,
            ] + nio,
            path: "Tools/larder-bench",
            swiftSettings: strict
        ),
        .target(
            name: "RecipeServer",
            dependencies: ["LarderGraphQL"] + nio,
            path: "Tools/RecipeServer",
            swiftSettings: strict
        ),
        .target(
            name: "ObjectServer",
            dependencies: ["Larder", "LarderAWS", "LarderFiles", crypto] + nio,
            path: "Tools/ObjectServer",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "larder-demo",
            dependencies: [
                "Larder", "LarderAWS", "LarderHTTP", "ObjectServer", "RecipeServer", httpClient,
                // To start servers that are not ours.
                "LarderTestSupport",
                // To tamper with larder.sqlite as another program would.
                sqlite,
            ],
            path: "Tools/larder-demo",
            swiftSettings: strict
        ),

        // The tests.
        .target(
            name: "LarderTestSupport",
            // NIOSSL to make servers that speak TLS.
            dependencies: ["Larder", "LarderTesting", tls],
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
        .testTarget(
            name: "LarderOperationsTests",
            dependencies: [
                "LarderOperations", "LarderMigrations", "LarderTestSupport", "larder-crash",
                // To make databases that are not ours, and to ask SQLite how it would run a statement.
                grdb, sqlite,
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
                "Larder", "LarderAWS", "LarderHTTP", "LarderOperations", "LarderPowerLoss", "LarderRecords",
                "LarderTestSupport", httpClient,
                // To take the room that a log has, as another program would.
                sqlite,
            ],
            path: "Tests/Crash",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderTests",
            dependencies: [
                "Larder", "LarderFiles", "LarderOperations", "LarderPowerLoss", "LarderRecords", "LarderTestSupport",
                "larder-crash", crypto, lifecycle, logging,
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                // To hold, damage and look into larder.sqlite as another program would.
                sqlite,
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderImportTests",
            dependencies: [
                "Larder", "LarderFiles", "LarderImport", "LarderOperations", "LarderRecords", "LarderGraphQL",
                "LarderTestSupport",
                // To make the files that other libraries would.
                sqlite,
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderHTTPTests",
            dependencies: [
                "Larder", "LarderHTTP", "LarderURLSession", "RecipeServer", "LarderTestSupport", httpClient, tls,
            ] + nio,
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderAWSTests",
            dependencies: [
                "Larder", "LarderAWS", "LarderFiles", "LarderOperations", "LarderTestSupport", "larder-crash",
                httpClient,
                bigIntegers, crypto, tls,
            ] + nio,
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderTestingTests", dependencies: ["Larder", "LarderTesting", "LarderTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "LarderMigrateTests",
            dependencies: [
                "Larder", "LarderFiles", "LarderOperations", "LarderRecords", "LarderLMDB", "LarderMigrations",
                "LarderMigrateCommand",
                "larder-crash", "LarderTestSupport",
                // To make databases as other programs, or other versions, would.
                grdb,
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LarderCommandTests",
            dependencies: [
                "Larder", "LarderAWS", "LarderCommand", "LarderCommandLine", "LarderFiles", "LarderMigrateCommand",
                "LarderOperations", "RecipeServer", "LarderTestSupport",
            ],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
