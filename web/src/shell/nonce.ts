/** The nonce of the page's content security policy. Style elements that a library adds need it. */
export const styleNonce = document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")?.content ?? "";
