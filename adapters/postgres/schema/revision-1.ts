import { CLAIM, RENEWAL } from './commands.js'
import { BY_POSTGRES, REPLY } from './plpgsql.js'

/**
 * For processes of a version without steps, during a deployment: their own claim would hand an expired record's steps on, and they
 * cannot read what a renewal says of a restored record.
 */
export function revision1(schema: string): string {
  return [
    { name: 'begin', parameters: CLAIM, reply: 'b.reply' },
    { name: 'renew', parameters: RENEWAL, reply: "CASE b.reply WHEN 'restored' THEN 'ok' ELSE b.reply END" },
  ]
    .map(
      ({ name, parameters, reply }) => `
CREATE OR REPLACE FUNCTION ${schema}.${name}_v1(
  ${parameters},
  ${REPLY}
) LANGUAGE sql VOLATILE ${BY_POSTGRES} AS $body$
  SELECT ${reply}, b.fingerprint, b.attempt, b.uncertain, b.lease, b.status, b.head, b.body
  FROM ${schema}.${name}_v2(${parameters.replace(/(p_\w+) \w+/g, '$1')}) b
$body$;
`,
    )
    .join('')
}
