/** References of webhooks and APIServices to a Service. */
import { pointer } from '#engine/registry/kinds/api-type.ts';
import { checkPort, PORT_TEXT } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import { int32 } from '#kube/schema-dsl.ts';

const DEFAULT_PORT = 443;

export const servicePort = (number: number) =>
  pointer(number, int32({ default: DEFAULT_PORT }), 'Port of the service. Defaults to 443.');

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
