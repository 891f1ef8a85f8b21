package import Larder
import LarderRecords

/// JSON as a tool prints it: members in the order in which they were put.
package indirect enum JSONText: Sendable {
    case null
    case boolean(Bool)
    case int(Int)
    case string(String)
    case array([JSONText])
    case object([(name: String, value: JSONText)])
    /// Text that is JSON already.
    case raw([UInt8])

    package static func strings(_ texts: [String]) -> JSONText { .array(texts.map(JSONText.string)) }

    /// UTF-8 on one line.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes
    }

    private func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .boolean(let value): bytes += (value ? "true" : "false").utf8
        case .int(let value): bytes += String(value).utf8
        case .string(let text): bytes += Value.string(text).json
        case .raw(let text): bytes += text
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                bytes += Value.string(member.name).json
                bytes.append(UInt8(ascii: ":"))
                member.value.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }
}

extension JSONText {
    package init(_ error: GraphQLError) {
        var members: [(name: String, value: JSONText)] = [("message", .string(error.message))]
        if let path = error.path { members.append(("path", JSONText(path))) }
        if let type = error.errorType { members.append(("errorType", .string(type))) }
        if !error.extensions.isEmpty { members.append(("extensions", .raw(Value.object(error.extensions).json))) }
        self = .object(members)
    }

    /// A path as responses write it: names and indexes.
    package init(_ path: ResponsePath) {
        self = .array(
            path.components.map { component in
                switch component {
                case .field(let name): .string(name)
                case .index(let index): .int(index)
                }
            })
    }
}
