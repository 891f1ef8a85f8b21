import Foundation
import Larder
import LarderAWS
import LarderHTTP

// What the blocks of the articles take for given. They are compiled and not run.

var file: URL { fatalError() }
var url: URL { fatalError() }
var folder: URL { fatalError() }
var video: URL { fatalError() }
var password: String { fatalError() }
var keys: S3Transport.CredentialSource { fatalError() }

var schema: Schema { fatalError() }
var store: Store { fatalError() }
var app: Partition { fatalError() }
var http: any GraphQLTransport { fatalError() }
var stagingHTTP: any GraphQLTransport { fatalError() }
var production: BackendEnvironment { fatalError() }
var staging: BackendEnvironment { fatalError() }
var session: Session { fatalError() }
var credentials: Credentials { fatalError() }
var orders: Pages { fatalError() }
var pool: CognitoUserPool { fatalError() }
var pages: BackendEnvironment.HostedSignIn { fatalError() }

struct LatestRecipes: TypedOperation {
    struct Data: Codable, Sendable {}
    var operation: GraphQLOperation { fatalError() }
}

struct Rate: TypedOperation {
    struct Data: Codable, Sendable {}
    var id: String
    var rating: Double
    var operation: GraphQLOperation { fatalError() }
}

var rate: GraphQLOperation { fatalError() }
var addReview: GraphQLOperation { fatalError() }
var addPhoto: GraphQLOperation { fatalError() }
var answers: [String] { fatalError() }
func review(_ answer: String) -> GraphQLOperation { fatalError() }

func show<Value>(_ value: Value) {}
func show(_ page: URL) async -> URL { fatalError() }
func report<Value>(_ value: Value) {}
func ask(_ challenge: SignInChallenge) -> SignInAnswer { fatalError() }
func ask(_ status: MutationStatus?) {}
func askWhetherToDiscard() {}
