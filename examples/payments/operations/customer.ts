import { z } from 'zod'
import { country, email, id, name } from '../fields.js'
import { type Books, newId } from '../ledger.js'
import type { Operation } from '../operation.js'
import { notFound, ruleBroken } from '../problems.js'

export interface Customer {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly country: string | null
  readonly createdAt: string
  readonly updatedAt: string
  readonly deletedAt: string | null
}

const createSchema = z.strictObject({ name, email, country: country.optional() })

export const createCustomer: Operation<typeof createSchema, Customer> = {
  path: '/api/service/customer/create',
  title: 'Create a customer',
  status: 201,
  schema: createSchema,
  async run({ name, email, country = null }, { books, now }) {
    const createdAt = now.toISOString()
    const customer: Customer = {
      id: newId('cus'),
      name,
      email,
      country,
      createdAt,
      updatedAt: createdAt,
      deletedAt: null,
    }
    books.put('customer', customer)
    return customer
  },
  emits: ({ id, email, createdAt }, merchant) => ({
    type: 'mandate_setup_started',
    date: createdAt,
    payload: {
      referenceId: id,
      reference: id,
      userNotificationEmail: email,
      creditor: { id: merchant.id, name: merchant.name },
    },
  }),
  async sample() {
    return { name: 'Grace Hopper', email: 'grace@example.com', country: 'DK' }
  },
}

const deleteSchema = z.strictObject({ customerId: id('cus') })

export const deleteCustomer: Operation<typeof deleteSchema, Customer> = {
  path: '/api/service/customer/delete',
  title: 'Delete a customer',
  status: 200,
  schema: deleteSchema,
  async run({ customerId }, { books, now }) {
    const customer = await liveCustomer(books, customerId)
    // Orders may still name the customer, so the entry stays.
    const deleted: Customer = { ...customer, deletedAt: now.toISOString() }
    books.put('customer', deleted)
    return deleted
  },
  async sample(context) {
    const customer = await createCustomer.run(await createCustomer.sample(context), context)
    return { customerId: customer.id }
  },
}

const updateSchema = z
  .strictObject({
    customerId: id('cus'),
    name: name.optional(),
    email: email.optional(),
    country: country.optional(),
  })
  .refine((given) => Object.keys(given).length > 1, 'Name at least one field to change')

export const updateCustomer: Operation<typeof updateSchema, Customer> = {
  path: '/api/service/customer/update',
  title: 'Update a customer',
  status: 200,
  schema: updateSchema,
  async run({ customerId, name, email, country }, { books, now }) {
    const customer = await liveCustomer(books, customerId)
    const updated: Customer = {
      ...customer,
      name: name ?? customer.name,
      email: email ?? customer.email,
      country: country ?? customer.country,
      updatedAt: now.toISOString(),
    }
    books.put('customer', updated)
    return updated
  },
  async sample(context) {
    const customer = await createCustomer.run(await createCustomer.sample(context), context)
    return { customerId: customer.id, email: 'admiral@example.com' }
  },
}

export async function liveCustomer(books: Books, customerId: string): Promise<Customer> {
  const customer = await books.get('customer', customerId)
  if (customer === undefined) throw notFound('customer', customerId)
  if (customer.deletedAt !== null) throw ruleBroken('customer_deleted', `Customer ${customerId} was deleted.`)
  return customer
}
