/** The pages of the recipes show it beside them. */
export * from '../../examples/recipes/merchant.js'
