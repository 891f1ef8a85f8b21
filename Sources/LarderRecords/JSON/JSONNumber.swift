/// Appends a number that is finite, as all numbers that came from JSON are.
func appendJSONNumber(_ number: Double, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: number.description.utf8)
}
