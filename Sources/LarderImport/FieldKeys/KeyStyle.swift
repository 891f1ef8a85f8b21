/// How a library prints arguments into the keys of fields.
///
/// All have come from the same function: arguments in ascending order of their names, joined by commas, as
/// `name:value`; an input object as `[name:…]` with its fields likewise inside; strings as they are, not quoted. What
/// differs is null, which older versions leave out, and lists.
enum KeyStyle {
    /// AppSync, and Apollo before lists were given a form of their own: lists as Swift prints them, strings in
    /// quotation marks.
    case appSync
    /// Apollo of any version: besides, null as `null`; a list of strings as `[a, b]`; a list of input objects as
    /// `[a:1,b:2,a:3]`, without a mark between them.
    case apollo

    var printsNull: Bool { self == .apollo }
    var printsPlainStrings: Bool { self == .apollo }
    var printsObjectsInLists: Bool { self == .apollo }
}
