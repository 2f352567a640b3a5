/** How an admission or conversion webhook is called, as its configuration says. */

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
