package import Foundation

extension OperationsDatabase {
    /// Runs `body` with the database of a folder, and closes it whatever comes of that.
    ///
    /// - Throws: What opening or `body` throws; what closing throws only where nothing failed before.
    package static func using<Result>(
        _ folder: URL, options: Options = Options(), _ body: (OperationsDatabase) async throws -> Result
    ) async throws -> Result {
        let database = try OperationsDatabase(folder: folder, options: options)
        let result: Result
        do { result = try await body(database) } catch {
            // What failed first is what is told.
            try? database.close()
            throw error
        }
        try database.close()
        return result
    }
}
