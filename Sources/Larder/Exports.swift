// The types of values and answers belong to the lower layers; a program that imports Larder has them too. What else
// those layers hold is `package`, and not exported.
@_exported public import LarderGraphQL
@_exported public import LarderRecords
