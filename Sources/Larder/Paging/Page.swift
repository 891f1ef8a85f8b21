public import LarderRecords

/// One page of a list.
public struct Page: Sendable, Hashable {
    /// The answer to the operation for this page, with the key fields and `__typename` of its objects.
    public let response: Response
    /// The page's objects, in order, without elements that are null and objects that other pages of the list have.
    public let objects: [ResponseValue]

    /// The objects in the program's own type.
    ///
    /// - Throws: `.data` where one does not fit.
    public func decode<Object: Decodable>(_ type: Object.Type = Object.self) throws(LarderError) -> [Object] {
        var decoded: [Object] = []
        for object in objects {
            do { decoded.append(try object.decode(type)) } catch {
                throw LarderError(.data, "An object of the page does not fit \(type)", response: response, cause: error)
            }
        }
        return decoded
    }
}

/// How much of a list is loaded.
public struct PagesStatus: Sendable, Hashable {
    /// The pages that the cache has and that follow each other.
    public var pageCount = 0
    /// The objects on them; each counts once.
    public var objectCount = 0
    /// Whether the last page says that none follows.
    public var isComplete = false
    /// The pages that a refresh has cut off: the server's new pages do not lead to them any more.
    public var stalePageCount = 0

    package init(pageCount: Int = 0, objectCount: Int = 0, isComplete: Bool = false, stalePageCount: Int = 0) {
        (self.pageCount, self.objectCount) = (pageCount, objectCount)
        (self.isComplete, self.stalePageCount) = (isComplete, stalePageCount)
    }
}
