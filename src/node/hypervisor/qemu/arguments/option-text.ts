/**
 * Formats options for QEMU: `kind,key=value` with doubled commas in values, or JSON, which all but the older options
 * accept. A value can never become a key, whatever it contains.
 */

type OptionValue = string | number | boolean;
export type DeviceOptions = Readonly<Record<string, OptionValue>>;
export type JsonOptions = { readonly [key: string]: OptionValue | JsonOptions };

/** Formats options as `kind,key=value`, with `on` and `off` for booleans. */
export function optionText(kind: string, options: Readonly<Record<string, OptionValue>>): string {
  const pairs = Object.entries(options).map(([key, value]) => `${key}=${formatValue(value)}`);
  return [...(kind === '' ? [] : [kind]), ...pairs].join(',');
}

function formatValue(value: OptionValue): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return String(value).replaceAll(',', ',,');
}

export function deviceArguments(options: DeviceOptions): string[] {
  return ['-device', JSON.stringify(options)];
}

export function blockdevArguments(options: JsonOptions): string[] {
  return ['-blockdev', JSON.stringify(options)];
}
