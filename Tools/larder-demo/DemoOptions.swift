import Foundation

/// What the command line asks for.
struct DemoOptions: Sendable {
    struct UsageError: Error {
        var message: String
    }

    static let usage = """
        usage: Tools/demo [--keep] [--store DIR] [--quiet] [--port N] [--latency MS]

          --keep        leave the store in its temporary folder, to look into it
          --store DIR   make the store in DIR, which must be new or empty, and leave it there
          --quiet       print the verdict only (also --check)
          --port N      where the server listens on 127.0.0.1; a free port otherwise
          --latency MS  hold back each of the server's answers, as a network would

        exit status: 0 all claims held, 1 one did not, 2 the demonstration could not be run

        """

    var store: URL?
    var keepsStore = false
    var isQuiet = false
    var asksForHelp = false
    var port = 0
    var latency = Duration.zero
    /// Set in a child process that is killed: what it does, and the server it asks.
    var child: (role: KilledChild.Role, server: URL)?

    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--keep": keepsStore = true
            case "--quiet", "--check": isQuiet = true
            case "--help", "-h": asksForHelp = true
            case "--store":
                store = URL(filePath: try Self.value(of: option, &rest), directoryHint: .isDirectory).absoluteURL
                keepsStore = true
            case "--port": port = try Self.number(of: option, &rest, in: 0...65_535)
            case "--latency": latency = .milliseconds(try Self.number(of: option, &rest, in: 0...2_000))
            default:
                guard let role = KilledChild.Role(rawValue: option) else {
                    throw UsageError(message: "unknown argument: \(option)")
                }
                guard let server = URL(string: try Self.value(of: option, &rest)) else {
                    throw UsageError(message: "\(option) takes the address of a server")
                }
                child = (role, server)
            }
        }
    }

    private static func value(of option: String, _ rest: inout ArraySlice<String>) throws(UsageError) -> String {
        guard let value = rest.popFirst(), !value.isEmpty else {
            throw UsageError(message: "\(option) takes a value")
        }
        return value
    }

    private static func number(
        of option: String, _ rest: inout ArraySlice<String>, in range: ClosedRange<Int>
    ) throws(UsageError) -> Int {
        guard let number = Int(try value(of: option, &rest)), range.contains(number) else {
            throw UsageError(message: "\(option) takes a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}
