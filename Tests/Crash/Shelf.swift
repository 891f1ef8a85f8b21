import Larder

let crashSchema = """
    type Book { id: ID! title: String! pages: [Page!]! }
    type Page { text: String! }
    type Query { books: [Book!]! }
    type Mutation { shelve(id: ID!): Book! }
    """
let shelf = GraphQLOperation("{ books { id title pages { text } } }")

/// Twenty books that all bear one number.
func shelfData(_ number: Int) -> [UInt8] {
    let books = (0..<20).map { book in
        let text = "\(number) " + String(repeating: "x", count: (number + book) % 700)
        return #"{"id":"\#(book)","title":"\#(number)","pages":[{"text":"\#(text)"},{"text":"\#(number)"}]}"#
    }
    return Array(#"{"books":[\#(books.joined(separator: ","))]}"#.utf8)
}

/// The number of a shelf; nil where the books do not all bear the same.
func wholeNumber(_ shelf: Response) -> Int? {
    guard let books = shelf["books"]?.elements, let first = books.first?["title"]?.string else { return nil }
    let isWhole =
        books.count == 20
        && books.allSatisfy { book in
            book["title"]?.string == first && book["pages"]?[1]?["text"]?.string == first
                && book["pages"]?[0]?["text"]?.string?.hasPrefix(first + " ") == true
        }
    return isWhole ? Int(first) : nil
}
