/** Names that tests of several folders use. */

/** The ConfigMap that a controller writes into every namespace. */
export const ROOT_CA = 'kube-root-ca.crt';
