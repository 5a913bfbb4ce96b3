/** @typedef {Record<string, unknown>} Body */

/**
 * The field that a story changes: the amount, or what comes nearest to it.
 *
 * @param {Body} body
 * @returns {string | undefined}
 */
export function fieldToChange(body) {
  const fields = Object.keys(body)
  const isAmount = (/** @type {string} */ field) => typeof body[field] === 'number'
  const isFree = (/** @type {string} */ field) => typeof body[field] === 'string' && !field.endsWith('Id')
  return fields.find(isAmount) ?? fields.find(isFree) ?? fields[0]
}

/** A longer name says nothing on a button. */
const MOST_CHARACTERS = 24

/**
 * A field's name as people say it.
 *
 * @param {string | undefined} field
 */
export function fieldWords(field) {
  if (field === undefined || field.length > MOST_CHARACTERS) return 'body'
  return field
    .replace(/Id$/, '')
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .replace(/^sell amount$/, 'amount')
}

/**
 * The same body, but for one field.
 *
 * @param {Body} body
 * @returns {Body}
 */
export function changedBody(body) {
  const field = fieldToChange(body)
  if (field === undefined) return { changed: true }
  const value = body[field]
  if (typeof value === 'number') return { ...body, [field]: value + 1_000 }
  return { ...body, [field]: typeof value === 'string' ? `${value}2` : null }
}

/**
 * A body that the service refuses.
 *
 * @param {Body} body
 * @returns {Body}
 */
export function brokenBody(body) {
  const field = fieldToChange(body)
  if (field === undefined) return { broken: true }
  return { ...body, [field]: typeof body[field] === 'number' ? -1 : null }
}
