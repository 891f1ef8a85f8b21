public import Foundation

/// What a program shows its users about failures: a sentence or two, without codes, for every code of every layer.
///
/// ```swift
/// var texts = ErrorTexts.japanese
/// texts[.operationsUnsentWork] = "まだ送信されていない注文があります。"
/// show(texts.text(for: error), button: error.remedy)
/// ```
///
/// `LarderError.message` is for developers, and stays English.
public struct ErrorTexts: Sendable {
    private let texts: [Situation: String]
    private var replacements: [LarderError.Code: String] = [:]

    private init(_ texts: [Situation: String]) { self.texts = texts }

    /// The texts in the first of the languages (as in `Locale.preferredLanguages`) that there are texts in; English
    /// where there are none.
    public init(languages: [String]) {
        let known = ["en": Self.english, "ja": Self.japanese]
        let language = languages.lazy.compactMap { known[String($0.prefix { $0 != "-" && $0 != "_" }).lowercased()] }
            .first
        self = language ?? .english
    }

    /// The program's own text for a code; nil where the library's is used. It replaces the library's.
    public subscript(code: LarderError.Code) -> String? {
        get { replacements[code] }
        set { replacements[code] = newValue }
    }

    /// The text for an error.
    public func text(for error: LarderError) -> String {
        replacements[error.code] ?? texts[error.situation] ?? texts[.programFault] ?? ""
    }

    /// The text for a code of a layer whose errors are of another type, such as `cognito.…`.
    public func text(for code: LarderError.Code) -> String { text(for: LarderError(code, code.rawValue)) }
}

extension ErrorTexts {
    /// In English.
    public static let english = ErrorTexts([
        .offline: "The server cannot be reached. Check your connection and try again.",
        .slow: "The server took too long to answer. Try again.",
        .throttled: "The server is busy. Wait a moment and try again.",
        .serverFault: "The server has a problem. Try again later.",
        .insecure: "A secure connection could not be made. If this happens again, ask for help.",
        .notSignedIn: "You are not signed in. Sign in and try again.",
        .sessionEnded: "Your session has ended. Sign in again.",
        .notAllowed: "Your account does not allow this. Ask for help if you think that it should.",
        .deviceFull: "This device is full. Free some space and try again.",
        .notLoaded: "This has not been loaded yet. Connect to the network and try again.",
        .deleted: "This no longer exists.",
        .rejected: "The server did not accept this. Check what you entered.",
        .conflict: "This was changed elsewhere at the same time. Look at it again and try once more.",
        .serverChanged: "The server no longer fits this version of the app. Update the app.",
        .newerData: "A newer version of the app saved this data. Update the app.",
        .olderData: "The data on this device could not be brought up to date. Ask for help.",
        .damaged: "The data on this device is damaged. Ask for help.",
        .busy: "The app is busy with something else. Try again.",
        .deviceLocked: "This device has not been unlocked since it was started. Unlock it and try again.",
        .keysLocked: "The key store of this device is locked. Unlock it and try again.",
        .keyLost: "Your saved sign-in can no longer be read. Sign in again.",
        .fileMissing: "The file is no longer there. Choose it again.",
        .fileUnreadable: "The file cannot be read. Choose another one.",
        .fileChanged: "The file has changed since you chose it. Try again.",
        .fileExists: "A file of this name exists already. Choose another name.",
        .placeUnusable: "The file cannot be saved there. Choose another place.",
        .damagedDownload: "The file arrived damaged. Try again.",
        .tooLarge: "This is too large. Choose something smaller.",
        .notFound: "This could not be found.",
        .emptyField: "Fill in all the fields.",
        .wrongPassword: "The name or the password is wrong. Check both and try again.",
        .unconfirmed: "This account has not been confirmed. Enter the code that was sent to you.",
        .newPassword: "A new password is needed. Reset your password.",
        .wrongCode: "The code is wrong or has expired. Enter it again, or get a new one.",
        .weakPassword: "This password cannot be used. Choose another one.",
        .nameTaken: "An account with this name or address exists already. Sign in, or choose another one.",
        .accountDisabled: "This account is disabled. Ask for help.",
        .wrongClock: "The clock of this device is wrong. Set the date and the time, or ask for help.",
        .cancelled: "This was cancelled.",
        .unfinished: "This is not finished yet. It goes on by itself.",
        .expired: "This was not sent in time. Try again if you still want it.",
        .unsentWork: "Some of your changes have not been sent yet. Wait until they are, and try again.",
        .unknownOutcome: "It is not certain that this was saved. Look whether it was, and try again if not.",
        .otherAccount: "You have switched to another account. Go on there.",
        .programFault: "Something went wrong in the app. Ask for help.",
    ])

    /// In Japanese.
    public static let japanese = ErrorTexts([
        .offline: "サーバーに接続できません。通信状態を確認して、もう一度お試しください。",
        .slow: "サーバーから時間内に応答がありませんでした。もう一度お試しください。",
        .throttled: "サーバーが混み合っています。しばらく待ってから、もう一度お試しください。",
        .serverFault: "サーバーで問題が発生しました。時間をおいて、もう一度お試しください。",
        .insecure: "安全な接続を確立できませんでした。繰り返し発生する場合は、サポートにお問い合わせください。",
        .notSignedIn: "サインインしていません。サインインしてから、もう一度お試しください。",
        .sessionEnded: "サインインの有効期限が切れました。もう一度サインインしてください。",
        .notAllowed: "このアカウントではこの操作を行えません。必要な場合は、サポートにお問い合わせください。",
        .deviceFull: "端末の空き容量が不足しています。空き容量を増やしてから、もう一度お試しください。",
        .notLoaded: "まだ読み込まれていないデータです。ネットワークに接続して、もう一度お試しください。",
        .deleted: "この項目はすでに削除されています。",
        .rejected: "サーバーで受け付けられませんでした。入力内容をご確認ください。",
        .conflict: "同時に別の場所で変更されました。内容を確認して、もう一度お試しください。",
        .serverChanged: "このバージョンのアプリはサーバーに対応していません。アプリを更新してください。",
        .newerData: "新しいバージョンのアプリで保存されたデータです。アプリを更新してください。",
        .olderData: "端末のデータを更新できませんでした。サポートにお問い合わせください。",
        .damaged: "端末のデータが破損しています。サポートにお問い合わせください。",
        .busy: "別の処理を実行中です。もう一度お試しください。",
        .deviceLocked: "端末の起動後、まだ一度もロックが解除されていません。ロックを解除して、もう一度お試しください。",
        .keysLocked: "端末の鍵の保管場所がロックされています。ロックを解除して、もう一度お試しください。",
        .keyLost: "保存されたサインイン情報を読み取れません。もう一度サインインしてください。",
        .fileMissing: "ファイルが見つかりません。もう一度選択してください。",
        .fileUnreadable: "ファイルを読み取れません。別のファイルを選択してください。",
        .fileChanged: "選択した後にファイルが変更されました。もう一度お試しください。",
        .fileExists: "同じ名前のファイルがすでにあります。別の名前を選択してください。",
        .placeUnusable: "その場所にはファイルを保存できません。別の場所を選択してください。",
        .damagedDownload: "受信したファイルが破損しています。もう一度お試しください。",
        .tooLarge: "サイズが大きすぎます。より小さいものを選択してください。",
        .notFound: "見つかりませんでした。",
        .emptyField: "すべての項目を入力してください。",
        .wrongPassword: "ユーザー名またはパスワードが正しくありません。確認して、もう一度お試しください。",
        .unconfirmed: "アカウントの確認が完了していません。届いた確認コードを入力してください。",
        .newPassword: "新しいパスワードが必要です。パスワードを再設定してください。",
        .wrongCode: "確認コードが正しくないか、有効期限が切れています。入力し直すか、新しいコードを取得してください。",
        .weakPassword: "このパスワードは使用できません。別のパスワードを入力してください。",
        .nameTaken: "このユーザー名またはアドレスはすでに登録されています。サインインするか、別のものを入力してください。",
        .accountDisabled: "このアカウントは無効になっています。サポートにお問い合わせください。",
        .wrongClock: "端末の時計が正しくありません。日付と時刻を設定するか、サポートにお問い合わせください。",
        .cancelled: "キャンセルされました。",
        .unfinished: "まだ完了していません。処理は自動的に続行されます。",
        .expired: "期限までに送信できませんでした。必要な場合は、もう一度お試しください。",
        .unsentWork: "まだ送信されていない変更があります。送信が終わるまで待ってから、もう一度お試しください。",
        .unknownOutcome: "保存されたかどうか確認できません。内容を確認して、保存されていなければもう一度お試しください。",
        .otherAccount: "別のアカウントに切り替わりました。切り替え後のアカウントで続けてください。",
        .programFault: "アプリで問題が発生しました。サポートにお問い合わせください。",
    ])
}

extension LarderError: LocalizedError {
    /// The text for the user, in the first of the user's languages that there is one in.
    public var errorDescription: String? { ErrorTexts(languages: Locale.preferredLanguages).text(for: self) }
    /// The message for developers.
    public var failureReason: String? { message }
}

// The errors of what a program implements, and of what it hands in, have the texts of their codes as well.

extension TransportError: LocalizedError {
    /// As a `LarderError` of this code.
    public var errorDescription: String? { LarderError(self).errorDescription }
    /// The message for developers.
    public var failureReason: String? { message }
}

extension ObjectError: LocalizedError {
    /// As a `LarderError` of this code.
    public var errorDescription: String? { LarderError(.init(rawValue: code.rawValue), message).errorDescription }
    /// The message for developers.
    public var failureReason: String? { message }
}

extension KeyError: LocalizedError {
    /// As a `LarderError` of this code.
    public var errorDescription: String? { LarderError(self).errorDescription }
    /// The message for developers.
    public var failureReason: String? { message }
}

extension IdentityError: LocalizedError {
    /// As a `LarderError` of this code.
    public var errorDescription: String? { LarderError(self).errorDescription }
    /// The message for developers.
    public var failureReason: String? { message }
}
