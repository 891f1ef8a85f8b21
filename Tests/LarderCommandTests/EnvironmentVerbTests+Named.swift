import Foundation
import Larder
import LarderTestSupport
import Testing

/// Verbs that are told an environment whose partition is not the current one.
extension EnvironmentVerbTests {
    private func write(_ text: String, to name: String, beside store: URL) throws -> String {
        let file = store.deletingLastPathComponent().appending(path: name)
        try Data(text.utf8).write(to: file)
        return file.path
    }

    /// The options of a query for the number that a partition has.
    private func number(beside store: URL) throws -> [String] {
        let schema = try write(Self.schema, to: "schema.graphqls", beside: store)
        return try ["--schema", schema, "--operation", write("{ number }", to: "number.graphql", beside: store)]
    }

    @Test("get, changes, check and watch look into the partition of the environment that --env names")
    func looksIntoNamed() async throws {
        try await withStore { (place, _, _) throws in
            func larder(_ arguments: [String]) async throws -> Outcome {
                try await LarderProcess.run(arguments + ["--env", "staging", "--store", place.path])
            }
            let object = try await larder(["get", "QUERY_ROOT"])
            #expect(object.status == 0 && object.output.contains("  number: 1"), "\(object)")
            let changes = try await larder(["changes"])
            #expect(changes.status == 0 && changes.output.contains(" QUERY_ROOT"), "\(changes)")
            let check = try await larder(["check", "--json"])
            #expect(check.status == 0 && check.output.contains(#""hasCache":true"#), "\(check)")
            let watch = try await larder(["watch", "--count", "1"] + number(beside: place))
            #expect(watch.output == #"{"data":{"number":1}}"# + "\n", "\(watch)")
        }
    }

    @Test("ingest stores in the partition that --env names, and enqueue is refused for one that was left")
    func storesInNamed() async throws {
        try await withStore { (place, _, _) throws in
            func larder(_ arguments: [String]) async throws -> Outcome {
                try await LarderProcess.run(arguments + ["--store", place.path])
            }
            let query = try number(beside: place)
            let response = try write(#"{"data":{"number":3}}"#, to: "response.json", beside: place)
            let taken = try await larder(["ingest", "--env", "staging", "--response", response] + query)
            #expect(taken.status == 0, "\(taken.errors)")
            let (named, current) = (
                try await larder(["query", "--env", "staging"] + query), try await larder(["query"] + query)
            )
            #expect(named.output == #"{"data":{"number":3}}"# + "\n", "\(named)")
            #expect(current.output == #"{"data":{"number":2}}"# + "\n", "\(current)")
            let count = try write("mutation { count }", to: "count.graphql", beside: place)
            let queued = try await larder(
                ["enqueue", "--env", "staging", "--operation", count] + Array(query.prefix(2)))
            #expect(queued.status != 0 && queued.output == "", "\(queued)")
            let left = try await larder(["mutations"]).output.split(separator: "\n")
            #expect(left.count == 1, "\(left)")
        }
    }

    @Test("pin and unpin work on the pins of the partition that --env names, and compact on its cache alone")
    func keepsInNamed() async throws {
        try await withStore { (place, _, _) throws in
            let staging = ["--env", "staging"]
            func larder(_ arguments: [String]) async throws -> Outcome {
                try await LarderProcess.run(arguments + ["--store", place.path])
            }
            func info(_ options: [String] = []) async throws -> String {
                try await larder(["info", "--json"] + options).output
            }
            let pinned = try await larder(["pin", "all"] + staging + number(beside: place))
            #expect(pinned.status == 0, "\(pinned.errors)")
            let (named, current) = (try await info(staging), try await info())
            #expect(named.contains(#""pins":[{"name":"all""#) && current.contains(#""pins":[]"#), "\(named) \(current)")
            #expect(try await larder(["unpin", "all"] + staging).status == 0)
            #expect(try await info(staging).contains(#""pins":[]"#))
            func generation(_ info: String) throws -> Substring {
                try #require(info.firstMatch(of: /"generation":(\d+)/)).1
            }
            #expect(try await larder(["compact"] + staging).status == 0)
            let (namedLater, currentLater) = (try await info(staging), try await info())
            #expect(try generation(namedLater) != generation(named))
            #expect(try generation(currentLater) == generation(current))
        }
    }

    @Test(
        "rm, gc and clear remove from the partition that --env names, and nothing from the current one",
        arguments: [
            ["rm", "--field", "number"], ["gc", "--max-age", "0", "--write"],
            ["clear", "--write", "--unsent", "discard"],
        ])
    func removesFromNamed(verb: [String]) async throws {
        try await withStore { (place, _, _) throws in
            func larder(_ arguments: [String]) async throws -> Outcome {
                try await LarderProcess.run(arguments + ["--store", place.path])
            }
            let query = try number(beside: place)
            let schema = verb[0] == "gc" ? Array(query.prefix(2)) : []
            // Ages are whole seconds, and what is to go has to be older than one.
            if verb[0] == "gc" { try await Task.sleep(for: .milliseconds(1_100)) }
            let removed = try await larder(verb + schema + ["--env", "staging"])
            #expect(removed.status == 0, "\(removed.errors)")
            #expect(try await larder(["query", "--env", "staging"] + query).status == 3)
            let current = try await larder(["query"] + query)
            #expect(current.output == #"{"data":{"number":2}}"# + "\n", "\(current)")
        }
    }
}
