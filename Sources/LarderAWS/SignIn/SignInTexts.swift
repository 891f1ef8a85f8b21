import Foundation

/// The texts of a sign-in screen, in English and Japanese. Each can be replaced by its key.
///
/// ```swift
/// var texts = SignInTexts(languages: Locale.preferredLanguages)
/// texts["title.signIn"] = "Welcome back"
/// title = texts.title(of: flow.state.step)
/// ```
///
/// Texts of failures are in `ErrorTexts`.
public struct SignInTexts: Sendable {
    private var texts: [String: String]

    private init(_ texts: [String: String]) { self.texts = texts }

    /// The texts in the first of the languages (as in `Locale.preferredLanguages`) that there are texts in; English
    /// where there are none.
    public init(languages: [String]) {
        let known = ["en": Self.english, "ja": Self.japanese]
        self =
            languages.lazy.compactMap { known[String($0.prefix { $0 != "-" && $0 != "_" }).lowercased()] }.first
            ?? .english
    }

    /// The text of a key. A text may have `%@` once, for what it speaks of.
    public subscript(key: String) -> String? {
        get { texts[key] }
        set { texts[key] = newValue }
    }

    /// All keys, in ascending order.
    public var keys: [String] { texts.keys.sorted() }

    private func text(_ key: String, _ value: String? = nil) -> String {
        let text = texts[key] ?? ""
        guard let place = text.range(of: "%@") else { return text }
        return text.replacingCharacters(in: place, with: value ?? "")
    }

    /// The heading of a screen.
    public func title(of step: SignInState.Step) -> String { text("title.\(step.key)") }

    /// What a screen says above its fields; nil where the heading says it all.
    public func explanation(of step: SignInState.Step) -> String? {
        switch step {
        case .code(.authenticator, _): text("explanation.authenticator")
        case .code(_, let delivery), .confirmAccount(let delivery), .resetPassword(let delivery):
            delivery.destination.map { text("explanation.codeSentTo", $0) } ?? text("explanation.codeSent")
        case .setUpAuthenticator: text("explanation.setUpAuthenticator")
        case .newPassword: text("explanation.newPassword")
        case .forgotPassword: text("explanation.forgotPassword")
        case .question(let question):
            question["question"]
                ?? (question.isEmpty
                    ? text("explanation.question")
                    : question.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n"))
        default: nil
        }
    }

    /// In how many seconds a code can be sent again.
    package func resendPause(_ seconds: Int) -> String { text("explanation.resendPause", String(seconds)) }

    /// The label of a field.
    public func label(of field: SignInField) -> String {
        switch field.kind {
        case .name: text("field.name")
        case .password: text("field.password")
        case .newPassword: text("field.newPassword")
        case .code: text("field.code")
        case .text: text("field.answer")
        case .credential: text("field.credential")
        case .attribute(let name):
            texts["attribute.\(name)"] ?? (name.hasPrefix("custom:") ? String(name.dropFirst(7)) : name)
        }
    }

    /// What is written on a button.
    public func label(of action: SignInAction, at step: SignInState.Step) -> String {
        switch action {
        case .submit: step == .signIn ? text("action.signIn") : text("action.continue")
        case .choose(let factor): label(of: factor)
        case .resendCode: text("action.resendCode")
        case .forgotPassword: text("action.forgotPassword")
        case .signUp: text("action.signUp")
        case .back: text("action.back")
        case .cancel: text("action.cancel")
        }
    }

    /// What a rule wants that a password breaks.
    public func text(for violation: PasswordRules.Violation, of rules: PasswordRules) -> String {
        text("rule.\(violation.rawValue)", String(rules.minimumLength))
    }

    private func label(of factor: SignInFactor) -> String {
        switch factor {
        case .password, .passwordProof: text("factor.password")
        case .emailCode: text("factor.emailCode")
        case .messageCode, .secondMessageCode: text("factor.messageCode")
        case .authenticator: text("factor.authenticator")
        case .passkey: text("factor.passkey")
        case .other(let name): name
        }
    }
}

extension SignInState.Step {
    fileprivate var key: String {
        switch self {
        case .signIn: "signIn"
        case .code: "code"
        case .chooseFactor: "chooseFactor"
        case .setUpAuthenticator: "setUpAuthenticator"
        case .newPassword: "newPassword"
        case .question: "question"
        case .passkey: "passkey"
        case .signUp: "signUp"
        case .confirmAccount: "confirmAccount"
        case .forgotPassword: "forgotPassword"
        case .resetPassword: "resetPassword"
        case .done: "done"
        case .cancelled: "cancelled"
        }
    }
}

extension SignInTexts {
    /// In English.
    public static let english = SignInTexts([
        "title.signIn": "Sign in",
        "title.code": "Enter the code",
        "title.chooseFactor": "How do you want to sign in?",
        "title.setUpAuthenticator": "Set up an authenticator app",
        "title.newPassword": "Choose a new password",
        "title.question": "One more question",
        "title.passkey": "Use your passkey",
        "title.signUp": "Create an account",
        "title.confirmAccount": "Confirm your account",
        "title.forgotPassword": "Forgot your password?",
        "title.resetPassword": "Set a new password",
        "title.done": "You are signed in",
        "title.cancelled": "Sign-in cancelled",
        "explanation.codeSent": "Enter the code that was sent to you.",
        "explanation.resendPause": "The code can be sent again in %@ s.",
        "explanation.codeSentTo": "A code was sent to %@.",
        "explanation.authenticator": "Your authenticator app shows the code.",
        "explanation.setUpAuthenticator":
            "Scan this with an authenticator app, or type in the key. Then enter the code that the app shows.",
        "explanation.newPassword": "The password that you were given works once. Choose your own.",
        "explanation.forgotPassword": "We will send you a code with which you can set a new password.",
        "explanation.question": "Your answer is needed to sign you in.",
        "field.name": "User name",
        "field.password": "Password",
        "field.newPassword": "New password",
        "field.code": "Code",
        "field.answer": "Answer",
        "field.credential": "Passkey",
        "attribute.email": "E-mail address",
        "attribute.phone_number": "Phone number",
        "attribute.name": "Name",
        "attribute.given_name": "First name",
        "attribute.family_name": "Last name",
        "attribute.nickname": "Nickname",
        "attribute.middle_name": "Middle name",
        "attribute.preferred_username": "Preferred user name",
        "attribute.address": "Address",
        "attribute.birthdate": "Date of birth (YYYY-MM-DD)",
        "attribute.gender": "Gender",
        "attribute.locale": "Language",
        "attribute.zoneinfo": "Time zone",
        "attribute.picture": "Address of a picture",
        "attribute.profile": "Address of a profile page",
        "attribute.website": "Website",
        "action.signIn": "Sign in",
        "action.continue": "Continue",
        "action.resendCode": "Send the code again",
        "action.forgotPassword": "Forgot your password?",
        "action.signUp": "Create an account",
        "action.back": "Back",
        "action.cancel": "Cancel",
        "factor.password": "With your password",
        "factor.emailCode": "With a code by e-mail",
        "factor.messageCode": "With a code by text message",
        "factor.authenticator": "With an authenticator app",
        "factor.passkey": "With a passkey",
        "rule.tooShort": "At least %@ characters",
        "rule.noLowercaseLetter": "A lowercase letter",
        "rule.noUppercaseLetter": "An uppercase letter",
        "rule.noDigit": "A digit",
        "rule.noSymbol": "A symbol, such as ! or ?",
    ])

    /// In Japanese.
    public static let japanese = SignInTexts([
        "title.signIn": "サインイン",
        "title.code": "コードの入力",
        "title.chooseFactor": "サインインの方法を選んでください",
        "title.setUpAuthenticator": "認証アプリの設定",
        "title.newPassword": "新しいパスワードの設定",
        "title.question": "確認の質問",
        "title.passkey": "パスキーでサインイン",
        "title.signUp": "アカウントの作成",
        "title.confirmAccount": "アカウントの確認",
        "title.forgotPassword": "パスワードをお忘れの方",
        "title.resetPassword": "パスワードの再設定",
        "title.done": "サインインしました",
        "title.cancelled": "サインインを中止しました",
        "explanation.codeSent": "届いたコードを入力してください。",
        "explanation.resendPause": "コードの再送信は%@秒後にできます。",
        "explanation.codeSentTo": "%@ にコードを送信しました。",
        "explanation.authenticator": "認証アプリに表示されているコードを入力してください。",
        "explanation.setUpAuthenticator":
            "認証アプリで読み取るか、キーを入力してください。その後、アプリに表示されるコードを入力してください。",
        "explanation.newPassword": "お渡ししたパスワードは一度だけ使えます。ご自身のパスワードを設定してください。",
        "explanation.forgotPassword": "新しいパスワードを設定するためのコードをお送りします。",
        "explanation.question": "サインインには回答が必要です。",
        "field.name": "ユーザー名",
        "field.password": "パスワード",
        "field.newPassword": "新しいパスワード",
        "field.code": "コード",
        "field.answer": "回答",
        "field.credential": "パスキー",
        "attribute.email": "メールアドレス",
        "attribute.phone_number": "電話番号",
        "attribute.name": "氏名",
        "attribute.given_name": "名",
        "attribute.family_name": "姓",
        "attribute.nickname": "ニックネーム",
        "attribute.middle_name": "ミドルネーム",
        "attribute.preferred_username": "希望するユーザー名",
        "attribute.address": "住所",
        "attribute.birthdate": "生年月日（YYYY-MM-DD）",
        "attribute.gender": "性別",
        "attribute.locale": "言語",
        "attribute.zoneinfo": "タイムゾーン",
        "attribute.picture": "画像のURL",
        "attribute.profile": "プロフィールページのURL",
        "attribute.website": "ウェブサイト",
        "action.signIn": "サインイン",
        "action.continue": "続ける",
        "action.resendCode": "コードを再送信",
        "action.forgotPassword": "パスワードをお忘れですか？",
        "action.signUp": "アカウントを作成",
        "action.back": "戻る",
        "action.cancel": "キャンセル",
        "factor.password": "パスワードを使う",
        "factor.emailCode": "メールで届くコードを使う",
        "factor.messageCode": "SMSで届くコードを使う",
        "factor.authenticator": "認証アプリを使う",
        "factor.passkey": "パスキーを使う",
        "rule.tooShort": "%@ 文字以上",
        "rule.noLowercaseLetter": "小文字を含む",
        "rule.noUppercaseLetter": "大文字を含む",
        "rule.noDigit": "数字を含む",
        "rule.noSymbol": "記号（! や ? など）を含む",
    ])
}
