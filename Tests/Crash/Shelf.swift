import Larder

let crashSchema = """
    type Book { id: ID! title: String! pages: [Page!]! }
    type Page { text: String! }
    type Query { books: [Book!]! }
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
    let isWhole = books.count == 20 && books.allSatisfy { book in
        book["title"]?.string == first && book["pages"]?[1]?["text"]?.string == first
            && book["pages"]?[0]?["text"]?.string?.hasPrefix(first + " ") == true
    }
    return isWhole ? Int(first) : nil
}

struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
