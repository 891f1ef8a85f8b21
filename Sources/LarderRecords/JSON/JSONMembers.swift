package import LarderGraphQL

/// The members of a JSON object, each as the bytes that it came as: an envelope is opened without reading its letter.
package struct JSONMembers: Sendable {
    private let json: [UInt8]
    private let places: [String: Range<Int>]

    /// Reads an object, whose members are checked and not kept.
    ///
    /// - Throws: Also where the text is JSON and no object, and where a name comes twice.
    package init(_ json: [UInt8]) throws(JSONError) {
        // Safe: the scanner is gone when the closure returns that lends it the bytes, and what it read is copied.
        let result = unsafe json.withUnsafeBufferPointer { buffer -> Result<[String: Range<Int>], JSONError> in
            guard let start = buffer.baseAddress else { return .failure(JSONError(.unexpectedEnd, at: 0)) }
            do throws(JSONError) {
                var scanner = unsafe JSONScanner(start, count: buffer.count)
                scanner.skipByteOrderMark()
                let places = try scanner.memberPlaces()
                try scanner.expectEnd()
                return .success(places)
            } catch { return .failure(error) }
        }
        places = try result.get()
        self.json = json
    }

    /// A member's JSON.
    package subscript(name: String) -> [UInt8]? { places[name].map { Array(json[$0]) } }

    /// A member's value; nil also where it is nested too deep to be read.
    package func value(_ name: String) -> Value? { self[name].flatMap { try? Value(json: $0) } }

    /// A member that is a string.
    package func string(_ name: String) -> String? {
        guard let place = places[name], json[place.lowerBound] == UInt8(ascii: "\"") else { return nil }
        let content = json[place].dropFirst().dropLast()
        guard content.contains(UInt8(ascii: "\\")) else { return String(decoding: content, as: UTF8.self) }
        guard case .string(let text)? = value(name) else { return nil }
        return text
    }
}

extension JSONScanner {
    /// Passes over an object, and tells where the value of each of its members stands.
    fileprivate mutating func memberPlaces() throws(JSONError) -> [String: Range<Int>] {
        try expect(UInt8(ascii: "{"))
        // A message's envelope has two to four.
        var places = [String: Range<Int>](minimumCapacity: 4)
        if try skip(UInt8(ascii: "}")) { return places }
        repeat {
            guard try peek() == UInt8(ascii: "\"") else { throw failure(.unexpectedByte) }
            let nameOffset = position
            let name = try text()
            try expect(UInt8(ascii: ":"))
            _ = try peek()
            let start = position
            try skipValue()
            guard places.updateValue(start..<position, forKey: name) == nil else {
                throw JSONError(.duplicateKey, at: nameOffset)
            }
        } while try continues(until: UInt8(ascii: "}"))
        return places
    }
}
