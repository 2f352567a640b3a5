/** Validates the conversion of a definition, with Kubernetes' messages and its (older) field names. */
import type { CrdSpec } from '#engine/registry/crd/definition.ts';
import { checkClientConfig } from '#engine/registry/kinds/admission/webhook-configurations.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue, unsupportedValue } from '#kube/field-error.ts';
import { nameErrors } from '#kube/names.ts';

const PATH = 'spec.conversion';
const STRATEGIES = ['None', 'Webhook'];
const REVIEW_VERSIONS = ['v1', 'v1beta1'];

export function checkConversion({ conversion }: CrdSpec): FieldError[] {
  if (conversion?.strategy === undefined) return [];
  const { strategy, webhook } = conversion;
  const config = `${PATH}.webhookClientConfig`;
  const versions = webhook?.conversionReviewVersions ?? [];
  if (strategy === 'Webhook') {
    return [...checkWebhookClient(webhook?.clientConfig, config), ...checkReviewVersions(versions)];
  }
  const errors: FieldError[] = [];
  if (strategy === '') errors.push(requiredValue(`${PATH}.strategy`));
  else if (strategy !== 'None') errors.push(unsupportedValue(`${PATH}.strategy`, strategy, STRATEGIES));
  const detail = 'should not be set when strategy is not set to Webhook';
  if (webhook?.clientConfig !== undefined) errors.push(forbiddenField(config, detail));
  if (versions.length > 0) errors.push(forbiddenField(`${PATH}.conversionReviewVersions`, detail));
  return errors;
}

type ClientConfig = NonNullable<NonNullable<CrdSpec['conversion']>['webhook']>['clientConfig'];

function checkWebhookClient(config: ClientConfig, path: string): FieldError[] {
  if (config === undefined) return [requiredValue(path, 'required when strategy is set to Webhook')];
  return [...checkClientConfig(path, config), ...checkCaBundle(config.caBundle ?? '', `${path}.caBundle`)];
}

const SHOWN_BYTES = 256;

function checkCaBundle(caBundle: string, path: string): FieldError[] {
  const bytes = Buffer.from(caBundle, 'base64');
  if (bytes.length === 0 || bytes.includes('-----BEGIN CERTIFICATE-----')) return [];
  const shown = [...bytes.subarray(0, SHOWN_BYTES)].map((byte) => `0x${byte.toString(16)}`).join(', ');
  const message = `Invalid value: []byte{${shown}}: unable to load root certificates: unable to parse bytes as PEM block`;
  return [{ reason: 'FieldValueInvalid', field: path, message }];
}

function checkReviewVersions(versions: readonly string[]): FieldError[] {
  const path = `${PATH}.conversionReviewVersions`;
  if (versions.length === 0) return [requiredValue(path)];
  const errors = versions.flatMap((version, i) => {
    if (versions.indexOf(version) < i) return [invalidValue(`${path}[${i}]`, version, 'duplicate version')];
    return nameErrors('label1035', version).map((message) => invalidValue(`${path}[${i}]`, version, message));
  });
  if (!versions.some((version) => REVIEW_VERSIONS.includes(version))) {
    errors.push(invalidValue(path, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`));
  }
  return errors;
}
