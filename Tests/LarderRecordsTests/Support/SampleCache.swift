import Foundation
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

/// A cache in a folder of its own, and a schema for what is written to it.
///
/// Unchecked: the cache is changed by `reopen` alone, which no test calls while others use it.
final class SampleCache: @unchecked Sendable {
    let schema: SchemaIndex
    let path: String
    private let options: RecordCache.Options
    private(set) var cache: RecordCache

    init(_ schema: SchemaIndex, path: String, options: RecordCache.Options = .patient) throws {
        self.schema = schema
        self.path = path
        self.options = options
        cache = try RecordCache(folder: path, stamp: "sample", options: options)
    }

    func reopen() throws {
        try cache.close()
        cache = try RecordCache(folder: path, stamp: "sample", options: options)
    }

    func operation(_ text: String, _ variables: [String: Value] = [:], name: String? = nil) throws -> BoundOperation {
        try CompiledOperation(operation: name, in: Document(parsing: text), schema).bound(variables)
    }

    func fragment(_ text: String, name: String? = nil) throws -> BoundOperation {
        try CompiledOperation(fragment: name, in: Document(parsing: text), schema).bound()
    }

    /// Writes a response and checks that the change set is exactly what became different.
    @discardableResult
    func write(
        _ operation: BoundOperation, response: String, to root: RecordCache.Root = .query,
        _ location: SourceLocation = #_sourceLocation
    ) async throws -> Commit {
        let parsed = try ParsedResponse.parse(Array(response.utf8), along: operation.layout)
        return try await changing(location) { try await $0.write(parsed, of: operation, to: root) }
    }

    @discardableResult
    func write(
        _ text: String, _ variables: [String: Value] = [:], data: String,
        _ location: SourceLocation = #_sourceLocation
    ) async throws -> Commit {
        try await write(operation(text, variables), response: "{\"data\":\(data)}", .query, location)
    }

    private func write(
        _ operation: BoundOperation, response: String, _ root: RecordCache.Root, _ location: SourceLocation
    ) async throws -> Commit {
        try await write(operation, response: response, to: root, location)
    }

    /// Changes the cache, and compares what it publishes with the difference of the whole cache before and after.
    @discardableResult
    func changing(
        _ location: SourceLocation = #_sourceLocation, _ change: (RecordCache) async throws -> Commit
    ) async throws -> Commit {
        let before = try CacheDump(cache)
        let commit = try await change(cache)
        let after = try CacheDump(cache)
        let expected = after.difference(from: before)
        #expect(commit.changes.fields == expected, sourceLocation: location)
        #expect(after.faults == [], sourceLocation: location)
        return commit
    }

    func json(
        _ text: String, _ variables: [String: Value] = [:], from root: RecordCache.Root = .query
    ) throws -> String {
        try json(operation(text, variables), from: root)
    }

    func json(_ operation: BoundOperation, from root: RecordCache.Root = .query) throws -> String {
        String(decoding: try cache.read(operation, from: root).response.json, as: UTF8.self)
    }

    func missing(_ text: String, _ variables: [String: Value] = [:]) throws -> [String] {
        try cache.read(operation(text, variables)).response.missing.map(\.description)
    }
}

/// Runs `body` with an empty cache.
func withSampleCache(
    _ sdl: String, _ options: RecordCache.Options = .patient, _ body: (SampleCache) async throws -> Void
) async throws {
    let schema = try SchemaIndex(parsing: sdl)
    try await withTemporaryFolder { folder in
        let sample = try SampleCache(schema, path: folder.appending(path: "records").path, options: options)
        try await body(sample)
        #expect(try CacheDump(sample.cache).faults == [])
        try sample.cache.close()
    }
}

/// The error that a response is refused with, as `code path: message`; nil where it is taken.
func parseFault(_ response: String, along operation: BoundOperation) -> String? {
    parseFault(Array(response.utf8), along: operation)
}

func parseFault(_ response: [UInt8], along operation: BoundOperation) -> String? {
    do throws(RecordError) {
        _ = try ParsedResponse.parse(response, along: operation.layout)
        return nil
    } catch {
        return "\(error.code.rawValue.dropFirst("records.".count)) \(error.path?.description ?? "")"
    }
}

extension RecordCache.Options {
    /// For tests that keep every thread busy: a write of theirs may wait long for one.
    static var patient: Self {
        var options = Self()
        options.lockTimeout = .seconds(300)
        return options
    }
}
