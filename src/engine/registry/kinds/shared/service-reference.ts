/** The connections to webhooks, and references of webhooks and APIServices to a Service. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { checkPort, PORT_TEXT } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import { bytes, int32, str } from '#kube/schema-dsl.ts';

const DEFAULT_PORT = 443;

export const servicePort = (number: number) =>
  pointer(number, int32({ default: DEFAULT_PORT }), 'Port of the service. Defaults to 443.');

/** Returns the type of the connection to a webhook, which two groups have in the same form. */
export const webhookClientConfig = (group: 'admissionregistration.v1' | 'apiextensions.v1') =>
  apiType(`${group}.WebhookClientConfig`, 'How to connect to a webhook: a service of the cluster or a URL.', {
    url: pointer(3, str(), 'URL of the webhook.'),
    service: pointer(
      1,
      apiType(`${group}.ServiceReference`, 'A reference to a service.', {
        namespace: required(1, str(), 'Namespace of the service.'),
        name: required(2, str(), 'Name of the service.'),
        path: pointer(3, str(), 'URL path of requests to the service.'),
        port: servicePort(4),
      }),
      'Service that serves the webhook.',
    ),
    caBundle: optional(2, bytes(), "PEM encoded CA bundle that verifies the webhook's server certificate."),
  });

interface ServiceReference {
  readonly name?: string;
  readonly namespace?: string;
  readonly port?: number;
}

export function checkServiceReference(field: string, service: ServiceReference): FieldError[] {
  const { name, namespace, port = DEFAULT_PORT } = service;
  const errors: FieldError[] = [];
  if (!name) errors.push(requiredValue(`${field}.name`));
  if (!namespace) errors.push(requiredValue(`${field}.namespace`));
  if (checkPort('', port).length > 0) {
    errors.push(invalidValue(`${field}.port`, port, `port is not valid: ${PORT_TEXT}`));
  }
  return errors;
}
