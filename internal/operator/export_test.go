package operator

// MayEnter is the rule of who is let in.
var MayEnter = mayEnter
