import Crypto
import Foundation
import LarderFiles

/// The text in which keys are kept, in a file or in a key store: see the article on credentials.
struct KeyText {
    static let magic = "larder key file "
    static let version = 1
    static let longest = 1 << 16

    let keys: MasterKeys

    init(_ keys: MasterKeys) { self.keys = keys }

    var text: String {
        var text = Self.magic + "\(Self.version)\n"
        text +=
            "# Without this file no program can read the credentials of its store. Keep it apart from copies "
            + "of the store.\n"
        for key in keys.all { text += "key \(key.id) \(Data(key.bytes).base64EncodedString())\n" }
        return text + "sum \(Self.checksum(text))\n"
    }

    /// - Parameter place: What holds the text, for errors.
    init(parsing bytes: [UInt8], of place: String) throws(KeyError) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.hasPrefix(Self.magic) else {
            // A file that has only begun to be written is ours.
            guard !text.isEmpty, !Self.magic.hasPrefix(text) else { throw Self.damaged(place, "it is cut short") }
            throw KeyError(.foreign, "\(place) holds something else than keys; name another place")
        }
        guard let version = Int(text.dropFirst(Self.magic.count).prefix { $0 != "\n" }) else {
            throw Self.damaged(place, "its version is no number")
        }
        guard version <= Self.version else {
            throw KeyError(
                .newerFormat,
                "A newer version of the library wrote \(place) (format \(version), known are those to "
                    + "\(Self.version)); update the program")
        }
        guard text.hasSuffix("\n"), let end = text.range(of: "sum ", options: .backwards),
            end.lowerBound > text.startIndex, text[text.index(before: end.lowerBound)] == "\n"
        else { throw Self.damaged(place, "it is cut short") }
        let body = String(text[..<end.lowerBound])
        guard text[end.upperBound...].dropLast() == Self.checksum(body) else {
            throw Self.damaged(place, "its checksum is another")
        }
        var keys: [MasterKey] = []
        for line in body.split(separator: "\n").dropFirst() where !line.hasPrefix("#") {
            let words = line.split(separator: " ")
            guard words.count == 3, words[0] == "key", let bytes = Data(base64Encoded: String(words[2])),
                let key = try? MasterKey(bytes: Array(bytes)), key.id == words[1]
            else { throw Self.damaged(place, "a line is no key") }
            keys.append(key)
        }
        guard let current = keys.first else { throw Self.damaged(place, "it has no key") }
        self.keys = MasterKeys(current: current, previous: Array(keys.dropFirst()))
    }

    private static func checksum(_ text: String) -> String {
        hexadecimal(SHA256.hash(data: Data(text.utf8)))
    }

    private static func damaged(_ place: String, _ what: String) -> KeyError {
        KeyError(
            .damaged,
            "\(place) is damaged: \(what); restore it from a backup. Removing it makes a new key, and signed-in users "
                + "must sign in again")
    }
}

extension MasterKeys {
    /// With a new key in use.
    package func adding(_ key: MasterKey = MasterKey()) -> MasterKeys { MasterKeys(current: key, previous: all) }

    /// Without some of the older ones.
    package func dropping(_ ids: Set<String>) -> MasterKeys {
        MasterKeys(current: current, previous: previous.filter { !ids.contains($0.id) })
    }
}
