/** The clientConfig of admission and conversion webhooks: the server to call, and the CA to trust. */

export interface ServiceReference {
  readonly namespace: string;
  readonly name: string;
  readonly path?: string;
  readonly port?: number;
}

export interface WebhookClientConfig {
  readonly url?: string;
  readonly service?: ServiceReference;
  /** PEM in base64. */
  readonly caBundle?: string;
}
