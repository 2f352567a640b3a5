/** Access modes and volume modes. */
import { type FieldError, forbiddenField, requiredValue } from '#kube/field-error.ts';
import { list, oneOf } from '#kube/schema-dsl.ts';

export const accessModes = list(oneOf(['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']), {
  atomic: true,
});

export const volumeMode = oneOf(['Block', 'Filesystem'], { default: 'Filesystem' });

export function checkAccessModes(field: string, modes: readonly string[] = [], missing = ''): FieldError[] {
  if (modes.length === 0) return [requiredValue(field, missing)];
  if (!modes.includes('ReadWriteOncePod') || modes.every((mode) => mode === 'ReadWriteOncePod')) return [];
  return [forbiddenField(field, 'may not use ReadWriteOncePod with other access modes')];
}
