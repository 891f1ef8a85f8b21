import Foundation

// The README's example as a program: folder, schema, server.
let arguments = CommandLine.arguments
guard arguments.count == 4, let server = URL(string: arguments[3]) else {
    fatalError("usage: Recipes FOLDER SCHEMA URL")
}
let schema = try String(contentsOf: URL(filePath: arguments[2]), encoding: .utf8)
// What is printed into a file would wait there for more.
let flushing = Task {
    while true {
        fflush(nil)
        try await Task.sleep(for: .milliseconds(50))
    }
}
try await showRecipes(folder: URL(filePath: arguments[1]), schema: schema, server: server)
