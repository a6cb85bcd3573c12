package config

import (
	"errors"
	"os"
	"path/filepath"
)

func always(text string) func(*Config) (string, error) {
	return func(*Config) (string, error) { return text, nil }
}

func inConfigDir(name string) func(*Config) (string, error) {
	return func(c *Config) (string, error) { return filepath.Join(c.ConfigDir, name), nil }
}

func inDataDir(name string) func(*Config) (string, error) {
	return func(c *Config) (string, error) { return filepath.Join(c.DataDir, name), nil }
}

func defaultConfigDir(*Config) (string, error) {
	return xdg("XDG_CONFIG_HOME", ".config", "DEED_CONFIG_DIR")
}

func defaultDataDir(*Config) (string, error) {
	return xdg("XDG_STATE_HOME", filepath.Join(".local", "state"), "DEED_DATA_DIR")
}

// defaultSocket lies where the system keeps the sockets of one login, if it has such a place.
func defaultSocket(c *Config) (string, error) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "deed", "deed.sock"), nil
	}
	return filepath.Join(c.DataDir, "deed.sock"), nil
}

// besideSocket puts the operator's socket where the agents' socket lies.
func besideSocket(c *Config) (string, error) {
	return filepath.Join(filepath.Dir(c.Socket), "operator.sock"), nil
}

// xdg follows the XDG base directory specification, which says that relative values are to be ignored.
func xdg(variable, inHome, instead string) (string, error) {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "deed"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("there is no home directory to put it in; set HOME or " + instead)
	}
	return filepath.Join(home, inHome, "deed"), nil
}
