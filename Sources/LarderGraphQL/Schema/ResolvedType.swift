/// A type of a schema inside its list and non-null wrappers, small enough to copy around.
package struct ResolvedType: Sendable, Hashable {
    /// The type inside all wrappers.
    package var named: SchemaIndex.TypeID
    /// How many lists are around it.
    package private(set) var listDepth: Int
    /// Bit 0 says that the value itself is not null, bit 1 that its elements are not, and so on inwards.
    private(set) var nonNullLevels: UInt64

    /// One bit for each list and one for what is inside of them must fit.
    static let deepestList = 60

    package init(named: SchemaIndex.TypeID) {
        self.init(named: named, listDepth: 0, nonNullLevels: 0)
    }

    init(named: SchemaIndex.TypeID, listDepth: Int, nonNullLevels: UInt64) {
        self.named = named
        self.listDepth = listDepth
        self.nonNullLevels = nonNullLevels
    }

    /// Nil where more lists are nested than ``deepestList``.
    init?(_ reference: TypeReference, named: SchemaIndex.TypeID) {
        self.init(named: named)
        var reference = reference
        while true {
            switch reference {
            case .named: return
            case .nonNull(let inner):
                nonNullLevels |= 1 << UInt64(listDepth)
                reference = inner
            case .list(let inner):
                guard listDepth < Self.deepestList else { return nil }
                listDepth += 1
                reference = inner
            }
        }
    }

    package var isNonNull: Bool { nonNullLevels & 1 == 1 }
    package var isList: Bool { listDepth > 0 }

    /// The type of a list's elements; nil where this is no list.
    package var element: ResolvedType? {
        guard isList else { return nil }
        return ResolvedType(named: named, listDepth: listDepth - 1, nonNullLevels: nonNullLevels >> 1)
    }

    package var nullable: ResolvedType {
        ResolvedType(named: named, listDepth: listDepth, nonNullLevels: nonNullLevels & ~1)
    }

    package var nonNull: ResolvedType {
        ResolvedType(named: named, listDepth: listDepth, nonNullLevels: nonNullLevels | 1)
    }
}
