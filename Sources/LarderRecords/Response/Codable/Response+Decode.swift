extension Response {
    /// Makes a value of the program's own type from the data.
    ///
    /// Absent fields are to the type what missing keys are. Numbers convert exactly or not at all, except to `Float`,
    /// which takes the nearest. What a custom scalar holds is decoded like any other part.
    ///
    /// - Throws: `DecodingError`, with the way to the value; and what the type's own `init(from:)` throws.
    public func decode<T: Decodable>(
        _ type: T.Type = T.self, options: DecodingOptions = DecodingOptions()
    ) throws -> T {
        guard let data else {
            throw DecodingError.valueNotFound(
                type, .init(codingPath: [], debugDescription: "The response has no data."))
        }
        return try data.decode(type, options: options)
    }
}

extension ResponseValue {
    /// Makes a value of the program's own type from this one, as `Response.decode`. Paths in errors start here.
    public func decode<T: Decodable>(
        _ type: T.Type = T.self, options: Response.DecodingOptions = Response.DecodingOptions()
    ) throws -> T {
        let context = DecodingContext(buffer, root: cell, options)
        return try context.value(type, cell, parent: DecodingContext.root, step: DecodingContext.root)
    }
}
