import Foundation
import Larder
import LarderHTTP

// What the guides declare, used in their order: folder, schema, server.
let arguments = CommandLine.arguments
guard arguments.count == 4, let server = URL(string: arguments[3]) else {
    fatalError("usage: Followed FOLDER SCHEMA URL")
}
let folder = URL(filePath: arguments[1])
let schema = try String(contentsOf: URL(filePath: arguments[2]), encoding: .utf8)
let store = try Store.open(at: folder, schemaText: [schema])
let app = try store.partition(server: .http(server))
try await prepareForTravel(app)
try await showAndRate(app)
try await renameLocally(app, to: "Soup")
guard try app.read(LatestCards(limit: 20)).recipes.items.allSatisfy({ $0.title == "Soup" }) else {
    fatalError("nothing was renamed")
}
_ = try await app.fetch(LatestCards(limit: 20), policy: .networkOnly)
print(try unsentCount(app), "unsent")
// What an app of AWS's SDKs brings along, and the function that the article shows.
func show(_ text: String) { print(text) }
let configuration = URL(filePath: arguments[1] + ".json")
try Data(
    #"{"AppSync":{"Default":{"ApiUrl":"\#(server)","Region":"eu-west-1","AuthMode":"API_KEY","ApiKey":"da2-x"}}}"#.utf8
).write(to: configuration)
let movedStore = try Store.open(at: URL(filePath: arguments[1] + "-moved"), schemaText: [schema])
guard try await moveFromAWS(movedStore, configuration: configuration) == 4 else {
    fatalError("the rating did not arrive")
}
try movedStore.close()

for await state in try app.watch(LatestCards(limit: 20), policy: .cacheOnly) {
    print(caption(of: state) ?? "All is as the server has it.")
    break
}
try store.close()
