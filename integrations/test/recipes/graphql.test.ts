import { buildSchema, graphql } from 'graphql'
import { expect, test } from 'vitest'
import { resolvers } from '../../../examples/recipes/graphql.js'

const schema = buildSchema(`
  type Payment { id: ID!, amount: Int! }
  type Query { payments: Int }
  type Mutation { createPayment(key: ID!, amount: Int!): Payment! }
`)
const { createPayment = {} } = schema.getMutationType()?.getFields() ?? {}
Object.assign(createPayment, { resolve: resolvers.Mutation.createPayment })

const send = async (source: string) => {
  const { data, errors } = await graphql({ schema, source, contextValue: { accountId: 'acme' } })
  return { data, errors: errors?.map(({ path, extensions, message }) => ({ path, extensions, message })) }
}

test('a mutation of several fields has a key for each; a repeat gets the same, and runs only what is new', async () => {
  const fieldOf = (name: string, key: string, amount: number) =>
    `${name}: createPayment(key: "${key}", amount: ${amount}) { id amount }`
  const first = await send(`mutation { ${fieldOf('a', 'one', 1)} ${fieldOf('b', 'two', 2)} }`)
  expect(first).toMatchObject({ data: { a: { amount: 1 }, b: { amount: 2 } }, errors: undefined })
  const repeat = await send(`mutation { ${fieldOf('b', 'two', 2)} ${fieldOf('c', 'three', 3)} }`)
  const { b } = first.data ?? {}
  expect(repeat.data).toMatchObject({ b, c: { amount: 3 } })
})

test('a refusal is an error of its field, with its code and what a retry is to wait', async () => {
  await send('mutation { createPayment(key: "used", amount: 1) { id } }')
  const { data, errors } = await send('mutation { createPayment(key: "used", amount: 2) { id } }')
  expect(data).toBeNull()
  expect(errors).toEqual([
    {
      path: ['createPayment'],
      extensions: { code: 'mismatched', retryAfterMs: null },
      message: expect.stringContaining('another input'),
    },
  ])
})
