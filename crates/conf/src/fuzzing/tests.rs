use turnpike_testkit::corpus;

#[test]
fn committed_corpus_holds() {
    corpus::hold("conf_lexer", b"\r\n {};#\"'\\$\0\xff", super::parse);
}
